// The differences between a report's rows as columns for programs: everything that a sweep varied.
#pragma once

#include <cstddef>

#include "base/table.h"
#include "report/report.h"

namespace ridgeline::store {
class Store;
}  // namespace ridgeline::store

namespace ridgeline::report {

// The most columns for trainers' own fields, and the most for parts of setups.
inline constexpr size_t kMostSweptColumns = 64;

// Adds columns to a report and its answer, one for each field of a point in which two rows differ and which the report
// does not show. They are named after the field; "own.NAME" for a trainer's own; "setup.NAME" for a sweep's setting of
// how a point runs, such as "setup.cpus" or "setup.environment.NCCL_ALGO". CSV and JSON have them, tables do not. The
// columns `point_id` and `result` identify rows; an answer with neither is unchanged.
void AddWhatDiffers(Report& report, store::Store& store, Table& table);

}  // namespace ridgeline::report
