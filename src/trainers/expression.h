// Formulas over a point's values in a definition: how it splits ranks, and what it requires of a point.
//
//   {{ranks}} / ({{tensor_parallel}} * {{pipeline_parallel}})
//   {{heads}} % {{tensor_parallel}} == 0 and {{shard}} != full
//
// Whole numbers with + - * / % and parentheses; == != < <= > >=; and, or. A text is a bare word and takes only == and
// !=. A division that is not exact has no value.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainers/templates.h"

namespace ridgeline::trainers {

class Expression {
 public:
  // `is_name`: the words that are names without braces, too; every other bare word is a text. Throws
  // Error(kInvalidInput) if `text` is not a formula.
  explicit Expression(std::string_view text, const std::function<bool(std::string_view word)>& is_name = nullptr);

  // The names in it, each once, in the order of appearance.
  const std::vector<std::string>& names() const { return names_; }
  // The formula as written, without braces.
  const std::string& words() const { return words_; }
  // Whether its value is true or false. Otherwise it is a number.
  bool is_condition() const;

  // REQUIRES: is_condition() is false for Number, and true for Holds. Throws Error(kInvalidInput) if there is no value:
  // arithmetic with a text, a division that is not exact, a number beyond 64 bits.
  int64_t Number(const Lookup& lookup) const;
  bool Holds(const Lookup& lookup) const;

 private:
  struct Node;
  class Parser;

  std::shared_ptr<const Node> root_;
  std::vector<std::string> names_;
  std::string words_;
};

}  // namespace ridgeline::trainers
