// Templates: texts with placeholders for a point's values, for a trainer's arguments, environment and files.
//
//   {{NAME}}                           the value
//   {{NAME | map: a=x, b="y z"}}       x if the value is a, y z if it is b; other values are errors
//   {{NAME | default: x}}              x if there is no value, or an empty one
//   {{NAME | words}}                   each word becomes an argument
//   {{if NAME == a}}…{{else}}…{{end}}  also !=, and NAME alone, which means: neither false nor empty
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline::trainers {

// The value of a name; nothing if it has none.
using Lookup = std::function<std::optional<FieldValue>(std::string_view name)>;

// How values are written into a text.
enum class Quoting {
  kNone,    // unchanged: for an argument or a variable
  kQuoted,  // TOML, YAML, JSON: strings in double quotes (unless the placeholder stands in quotes), escaped as all
            // three read them; numbers as all three, and YAML 1.1, read them
  kPython,  // Python: strings in parentheses, so that nothing beside them joins them; True and False
};

class Template {
 public:
  // Throws Error(kInvalidInput) if `text` is not a template.
  explicit Template(std::string_view text, Quoting quoting = Quoting::kNone);

  // The message for a name without a value.
  static std::string NoValue(std::string_view name);

  // The names in it, each once, sorted.
  std::vector<std::string> Names() const;

  // Throws Error(kInvalidInput) for a name without a value, and for a value that a map lacks. If `stand_in` is given,
  // it replaces missing values, also in maps.
  std::string Text(const Lookup& lookup, const Lookup& stand_in = nullptr) const;
  // The text as arguments: none if it is empty, several with `words`.
  std::vector<std::string> Arguments(const Lookup& lookup, const Lookup& stand_in = nullptr) const;

 private:
  struct Mapped {
    std::string from;
    std::string to;
  };
  struct Value {
    std::string name;
    std::vector<Mapped> map;              // empty: no map
    std::optional<std::string> standard;  // the value of `default`
    bool words = false;
    bool with_point = false;  // `float`: whole numbers get a decimal point: 1.0
    bool in_quotes = false;   // the placeholder stands between double quotes
  };
  struct Branch;
  struct Part {
    std::string text;
    std::optional<Value> value;
    std::vector<Branch> branch;  // at most one
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

}  // namespace ridgeline::trainers
