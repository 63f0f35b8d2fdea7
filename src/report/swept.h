// What the rows of a report differ in, as columns for programs: what a sweep varied, whatever it is.
#pragma once

#include <cstddef>

#include "base/table.h"
#include "report/report.h"

namespace ridgeline {

class Store;

// Of trainers' own fields, and of what setups say, so many at most have a column each.
inline constexpr size_t kMostSweptColumns = 64;

// Gives a report and its answer a column for each field of a point in which two of its rows differ, and which the
// report does not show: the field's name; "own.NAME" for a trainer's own; "setup.NAME" for what a sweep says of how a
// point runs, such as "setup.cpus" or "setup.environment.NCCL_ALGO". CSV and JSON have them, tables do not. Rows are
// known by the columns `point_id` and `result`; an answer with neither is left as it is.
void AddWhatDiffers(Report& report, Store& store, Table& table);

}  // namespace ridgeline
