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
  bool has_value = false;  // a group that took no part in the match has none
  std::string_view whole;  // all that the pattern matched
};

class Pattern {
 public:
  // Throws Error(kInvalidInput) for one that is too long or that RE2 does not take.
  explicit Pattern(const std::string& text);

  const std::string& text() const;
  // What is wrong with its groups for one that takes a value: it has a group named `value` or exactly one besides
  // `step`; empty where nothing is.
  std::string GroupsProblem() const;
  std::optional<PatternMatch> Find(std::string_view line) const;

 private:
  std::shared_ptr<const re2::RE2> compiled_;
  int value_group_ = 0;  // 0: it has none
  int step_group_ = 0;
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
