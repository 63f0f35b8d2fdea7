// The history of each point over commits, and the commits at which it changed.
#pragma once

#include <span>

#include "base/table.h"
#include "regress/measurements.h"

namespace ridgeline {

// A row for each cell and each commit in turn of which it has runs, the oldest first; `changed_only`: only those at
// which the level changed (stats/change_points.h). Steps are geometric means over the commit's runs.
Table HistoryTable(std::span<const MeasuredCell> cells, bool changed_only = false);

// The same for people: figures rounded.
Table ShortHistoryTable(std::span<const MeasuredCell> cells, bool changed_only = false);

}  // namespace ridgeline
