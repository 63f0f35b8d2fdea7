// The history of each point over commits, and the commits at which it changed.
#pragma once

#include <span>

#include "base/table.h"
#include "regress/measurements.h"

namespace ridgeline::regress {

// One row for each cell and each sequence of runs of one commit, oldest first. `changed_only`: only the rows at which
// the level changed (stats/change_points.h). Steps are geometric means over the commit's runs.
Table HistoryTable(std::span<const MeasuredCell> cells, bool changed_only = false);

// The same for people, with rounded figures.
Table ShortHistoryTable(std::span<const MeasuredCell> cells, bool changed_only = false);

}  // namespace ridgeline::regress
