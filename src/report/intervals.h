// The intervals of a report's figures: how far they would differ if the same runs were measured again. They come from
// the runs' step times (src/stats), so that no report claims more than was measured.
//
// A column NAME with `steps_of` has these beside it. They are empty if its runs have too few step times:
//   NAME_low, NAME_high          the ends of the 95 % interval, in the column's unit
// and, if it compares two runs,
//   NAME_change                  "more", "less", or "none": no change is within the interval
//   NAME_within_percent          the largest change within the interval
//   NAME_more_repeats            with this many more repeats of both runs …
//   NAME_then_percent            … a change of this size would show: half of what shows now
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "report/report.h"
#include "stats/median.h"

namespace ridgeline::report {

inline std::string LowColumn(std::string_view name) { return std::string(name) + "_low"; }
inline std::string HighColumn(std::string_view name) { return std::string(name) + "_high"; }

// The median of a run's measured steps, from the store: `all_steps_ns`, its `warmup_steps`, and the `steps` of each of
// its repeats. Nothing if there are too few. Throws Error(kInvalidInput) if step times are invalid.
std::optional<stats::Estimate> MedianOfSteps(const std::string& all_steps_ns, int64_t warmup_steps, int64_t steps);

// The columns beside one with `steps_of`; none beside any other.
std::vector<ReportColumn> IntervalColumns(const ReportColumn& column);

// Fills them. The query must give `result`, and each row's `all_steps_ns`, `warmup_steps`, `steps` and `repeats`, as in
// the store's views. Throws Error(kInvalidInput) if one is missing, or if step times are invalid.
void AddIntervals(const Report& report, Table& table);

}  // namespace ridgeline::report
