// The intervals of a report's figures: how far they would be otherwise, were the same runs measured again. From the
// runs' step times (src/stats), so that no report says more than was measured.
//
// A column NAME with `steps_of` has these beside it, empty where its runs have too few step times:
//   NAME_low, NAME_high          the ends of the interval of 95 %, in the column's unit
// and, where it compares two runs,
//   NAME_change                  "more", "less", or "none": no change is within the interval
//   NAME_within_percent          the largest change within the interval
//   NAME_more_repeats            with so many more repeats of both runs …
//   NAME_then_percent            … a change of this size would show: half of what shows now
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "report/report.h"

namespace ridgeline {

inline std::string LowColumn(std::string_view name) { return std::string(name) + "_low"; }
inline std::string HighColumn(std::string_view name) { return std::string(name) + "_high"; }

// The columns that stand beside one with `steps_of`; none beside any other.
std::vector<ReportColumn> IntervalColumns(const ReportColumn& column);

// Fills them. The query gives `result`, and each row's `all_steps_ns`, `warmup_steps`, `steps` and `repeats`, as
// the store's views have them. Throws Error(kInvalidInput) where one is missing, or step times are none.
void AddIntervals(const Report& report, Table& table);

}  // namespace ridgeline
