// Marks where the level of step times changed in the histories that a report's rows form (stats/change_points.h): as
// `ridgeline history` finds in the same runs.
//
// A report with `changes` has these columns beside those of its query. They are empty in rows without a change:
//   step_change             "slower" or "faster"
//   step_change_percent     how much longer steps take from here on: 3.2, -1.1
//   step_change_words       "3.2 % slower"
#pragma once

#include "base/table.h"
#include "report/report.h"

namespace ridgeline::report {

// The query must give the columns that `changes` names, and each row's `failure`, `all_steps_ns`, `warmup_steps`,
// `steps` and `step_median_ns`, as in the store's views. Throws Error(kInvalidInput) if one is missing.
void AddChanges(const Report& report, Table& table);

}  // namespace ridgeline::report
