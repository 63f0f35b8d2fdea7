// Finds a definition's metrics in one line of a log. The line may be JSON or text, cut, or mixed from several writers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "trainers/definition.h"
#include "trainers/patterns.h"

namespace ridgeline::trainers {

// Refers to the line, so it is valid only during the call of `take`.
struct LineValue {
  size_t metric = 0;  // index in the list
  std::string_view value;
  std::string_view unit;  // as the line names it; may be empty
  std::string_view step;  // empty if the line does not say it; also the rank
  std::string_view of;    // the number of steps, if the line says it right after the step: 5/100
  std::string_view rank;
  std::string_view record;  // the part of the line from the same writer
};

class LineMetrics {
 public:
  explicit LineMetrics(std::vector<const Metric*> metrics);

  // `cut`: the line may be incomplete, so a value at its end does not count. If two writers share a line, the values of
  // both count, except one that the other may have cut. If a launcher put a prefix before the line, `^` matches behind
  // it, too.
  void Line(std::string_view line, bool cut, const std::function<void(const LineValue&)>& take) const;

 private:
  // `places`: of the patterns in `patterned_`
  void TakePatterns(std::string_view line, const std::vector<int>& places, bool cut,
                    const std::function<void(const LineValue&)>& take) const;
  void TakeBehindPrefix(std::string_view line, bool cut, const std::function<void(const LineValue&)>& take) const;
  // `is_last`: the record is the last of its line.
  void TakePattern(size_t metric, std::string_view record, bool cut, bool is_last,
                   const std::function<void(const LineValue&)>& take) const;
  void TakeObjects(std::string_view line, const std::function<void(const LineValue&)>& take) const;

  std::vector<const Metric*> metrics_;
  std::vector<size_t> patterned_;  // indices of the metrics with a pattern, in the order of set_
  std::vector<size_t> of_json_;
  std::vector<int> of_begin_;  // places in patterned_ of patterns that may ask for a line's beginning
  PatternSet set_;
};

// The rank that torchrun ("[rank3]:", "[default3]:") or mpirun ("[1,3]<stdout>:") put before a line. May be empty.
std::string_view RankOf(std::string_view line);

// Parses a step's number, with or without commas between its digits.
std::optional<int64_t> StepOf(std::string_view text);

}  // namespace ridgeline::trainers
