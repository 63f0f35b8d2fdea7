// Regular expressions, through RE2: matched in time linear in the line's length and in bounded memory, whatever the
// pattern and the line are.
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

namespace ridgeline {

inline constexpr size_t kMaxPatternBytes = 1000;

struct PatternMatch {
  std::string_view value;  // of the group `value`, else of the only one; empty where it has none
  std::optional<std::string_view> step;
  std::optional<std::string_view> rank;
  std::optional<std::string_view> unit;
  bool has_value = false;  // a group that took no part in the match has none
  std::string_view whole;  // all that the pattern matched
};

class Pattern {
 public:
  // Throws Error(kInvalidInput) for one that is too long or that RE2 does not take.
  explicit Pattern(const std::string& text);

  const std::string& text() const;
  // What is wrong with its groups for one that takes a value: it has a group named `value` or exactly one besides
  // `step`, `rank` and `unit`; empty where nothing is.
  std::string GroupsProblem() const;
  bool has_step() const { return step_group_ != 0; }
  bool has_unit() const { return unit_group_ != 0; }
  // The first match that begins at `from` or behind; at `from` itself, where `there`.
  std::optional<PatternMatch> Find(std::string_view line, size_t from = 0, bool there = false) const;

 private:
  bool IsOther(int group) const;
  int Unnamed() const;  // how many groups there are besides step, rank and unit

  std::shared_ptr<const re2::RE2> compiled_;
  int value_group_ = 0;  // 0: it has none
  int step_group_ = 0;
  int rank_group_ = 0;
  int unit_group_ = 0;
};

// Many patterns, asked in one pass which of them may match a line.
class PatternSet {
 public:
  explicit PatternSet(const std::vector<const Pattern*>& patterns);
  PatternSet(const PatternSet&) = delete;
  PatternSet& operator=(const PatternSet&) = delete;
  ~PatternSet();

  // The places in `patterns` of those that match, in order; of all, where that would take too much memory to say.
  std::vector<int> Matching(std::string_view line) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;  // null: too large, or empty
  std::vector<int> all_;
};

}  // namespace ridgeline
