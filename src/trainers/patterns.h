// Regular expressions (RE2). Matching takes time linear in the line's length and bounded memory, for any pattern and
// line.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace ridgeline::trainers {

inline constexpr size_t kMaxPatternBytes = 1000;

struct PatternMatch {
  std::string_view value;  // the group `value`, else the only group; empty if it has none
  std::optional<std::string_view> step;
  std::optional<std::string_view> rank;
  std::optional<std::string_view> unit;
  bool has_value = false;  // false if that group took no part in the match
  std::string_view whole;  // the whole match
};

class Pattern {
 public:
  // Throws Error(kInvalidInput) if `text` is too long or RE2 refuses it.
  explicit Pattern(const std::string& text);

  const std::string& text() const;
  // What is wrong with the groups of a pattern that takes a value. It needs a group named `value`, or exactly one
  // besides `step`, `rank` and `unit`. Empty if nothing is wrong.
  std::string GroupsProblem() const;
  bool has_step() const { return step_group_ != 0; }
  bool has_unit() const { return unit_group_ != 0; }
  // Whether it may ask for the beginning of a line.
  bool has_begin() const;
  // The first match at or after `from`; with `there`, only a match at `from`.
  std::optional<PatternMatch> Find(std::string_view line, size_t from = 0, bool there = false) const;

 private:
  bool IsOther(int group) const;
  int Unnamed() const;  // number of groups besides step, rank and unit

  std::shared_ptr<const re2::RE2> compiled_;
  int value_group_ = 0;  // 0: no such group
  int step_group_ = 0;
  int rank_group_ = 0;
  int unit_group_ = 0;
};

// Finds in one pass which of many patterns may match a line.
class PatternSet {
 public:
  explicit PatternSet(const std::vector<const Pattern*>& patterns);
  PatternSet(const PatternSet&) = delete;
  PatternSet& operator=(const PatternSet&) = delete;
  ~PatternSet();

  // Indices of the matching patterns, in order. All indices if matching would take too much memory.
  std::vector<int> Matching(std::string_view line) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;  // null if it is too large or empty
  std::vector<int> all_;
};

}  // namespace ridgeline::trainers
