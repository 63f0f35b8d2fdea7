// Text with places in it for a point's values: what a definition says of a trainer's arguments, environment and files.
//
//   {{NAME}}                           the value
//   {{NAME | map: a=x, b="y z"}}       x where the value is a, y z where it is b; any other has no place there
//   {{NAME | default: x}}              x where there is no such value, or an empty one
//   {{NAME | words}}                   as many arguments as it has words
//   {{if NAME == a}}…{{else}}…{{end}}  also !=, and NAME alone: unless it is false or empty
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline {

// What a name means; nothing where it has no value.
using Lookup = std::function<std::optional<FieldValue>(std::string_view name)>;

// How a value is written into text of this kind.
enum class Quoting {
  kNone,    // as it is: an argument, a variable's value
  kQuoted,  // TOML, YAML, JSON: text in double quotes, unless it stands in them, escaped as all three read it; a number
            // as all three, and YAML 1.1, read it as one
  kPython,  // Python: text as a string in parentheses, so that nothing beside it becomes a part of it; True and False
};

class Template {
 public:
  // Throws Error(kInvalidInput) that says what is wrong.
  explicit Template(std::string_view text, Quoting quoting = Quoting::kNone);

  // What is wrong where a name has no value.
  static std::string NoValue(std::string_view name);

  // Every name in it, once, sorted.
  std::vector<std::string> Names() const;

  // Throws Error(kInvalidInput) for a name without a value, and a value that a map lacks. `stand_in` is asked for what
  // stands in place of a value that is not there, whatever a map says; nothing: none may be missing.
  std::string Text(const Lookup& lookup, const Lookup& stand_in = nullptr) const;
  // An argument; none where the text is empty, several where `words` says so.
  std::vector<std::string> Arguments(const Lookup& lookup, const Lookup& stand_in = nullptr) const;

 private:
  struct Mapped {
    std::string from;
    std::string to;
  };
  struct Value {
    std::string name;
    std::vector<Mapped> map;              // empty: none is said
    std::optional<std::string> standard;  // of `default`
    bool words = false;
    bool with_point = false;  // of `float`: a whole number is written as one that is not: 1.0
    bool in_quotes = false;   // it stands between double quotes
  };
  struct Branch;
  struct Part {
    std::string text;
    std::optional<Value> value;
    std::vector<Branch> branch;  // one or none
  };
  struct Branch {
    std::string name;
    bool compares = false;
    bool equal = true;
    std::string operand;
    std::vector<Part> then;
    std::vector<Part> otherwise;
  };
  class Parser;

  std::string ValueOf(const Value& value, const Lookup& lookup, const Lookup& stand_in) const;
  std::string Quoted(const std::string& text, bool in_quotes) const;
  static bool Holds(const Branch& branch, const Lookup& lookup);
  void Append(const std::vector<Part>& parts, const Lookup& lookup, const Lookup& stand_in, std::string& out) const;
  static void AddNames(const std::vector<Part>& parts, std::vector<std::string>& names);

  std::vector<Part> parts_;
  Quoting quoting_;
};

}  // namespace ridgeline
