// What one line of a log says of a definition's metrics: lines of several writers, whole or cut, JSON or text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "trainers/definition.h"
#include "trainers/patterns.h"

namespace ridgeline {

// It views the line, for as long as it is taken.
struct LineValue {
  size_t metric = 0;  // its place in the list
  std::string_view value;
  std::string_view unit;  // that the line names; empty: it names none
  std::string_view step;  // empty: it says none; and so the rank
  std::string_view of;    // how many steps there are, where the line says it right behind the step: 5/100
  std::string_view rank;
  std::string_view record;  // what of the line is its writer's
};

class LineMetrics {
 public:
  explicit LineMetrics(std::vector<const Metric*> metrics);

  // `cut`: more may have been meant to come, so that a value at the line's end is none. Where two have written into one
  // line, each has its values, but for one that the other's begin may have cut.
  void Line(std::string_view line, bool cut, const std::function<void(const LineValue&)>& take) const;

 private:
  // `is_last`: of its line.
  void TakePattern(size_t metric, std::string_view record, bool cut, bool is_last,
                   const std::function<void(const LineValue&)>& take) const;
  void TakeObjects(std::string_view line, const std::function<void(const LineValue&)>& take) const;

  std::vector<const Metric*> metrics_;
  std::vector<size_t> patterned_;  // the places of those that have a pattern, as the set has them
  std::vector<size_t> of_json_;
  PatternSet set_;
};

// The rank that torchrun ("[rank3]:", "[default3]:") or mpirun ("[1,3]<stdout>:") put before a line; empty: none.
std::string_view RankOf(std::string_view line);

// A step's number as lines say it, with or without commas between its digits.
std::optional<int64_t> StepOf(std::string_view text);

}  // namespace ridgeline
