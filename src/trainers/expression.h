// Small formulas over a point's values, of a definition: how its ranks are split, and what it needs of a point.
//
//   {{ranks}} / ({{tensor_parallel}} * {{pipeline_parallel}})
//   {{heads}} % {{tensor_parallel}} == 0 and {{shard}} != full
//
// Whole numbers with + - * / % and parentheses; == != < <= > >=, which of text, a bare word, takes the first two alone;
// and, or. A division comes out even, or has no value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainers/templates.h"

namespace ridgeline {

class Expression {
 public:
  // Throws Error(kInvalidInput) that says what is wrong.
  explicit Expression(std::string_view text);

  // Every name in it, once, in the order of their places.
  const std::vector<std::string>& names() const { return names_; }
  // As it was written, without the braces.
  const std::string& words() const { return words_; }
  // Whether it holds or not; else it is a number.
  bool is_condition() const;

  // Each for its kind alone. Throws Error(kInvalidInput) where it has no value: a text is counted with, a division does
  // not come out even, a number is beyond 64 bits.
  int64_t Number(const Lookup& lookup) const;
  bool Holds(const Lookup& lookup) const;

 private:
  struct Node;
  class Parser;

  std::shared_ptr<const Node> root_;
  std::vector<std::string> names_;
  std::string words_;
};

}  // namespace ridgeline
