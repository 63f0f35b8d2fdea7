// The table that `ridgeline run` prints last.
#pragma once

#include <string>

#include "base/table.h"
#include "store/store.h"
#include "sweep/sweep.h"

namespace ridgeline::cli {

// One row per point, in the sweep's order, as the sweep measures it now. The columns are: the fields that vary; how the
// point ended; steady tokens/s, for repeats with half of the 95 % interval that their steps leave; the steps' median,
// mean and cv; for a GPU its tokens/s, TFLOP/s and MFU; planned peak; the peak of an accelerator's memory, if any point
// reports it, with what it counts and how much was reserved; peak RSS; and the trainers' own figures. A throughput that
// other programs disturbed has kDisturbedMark. A note says if a run was emulated, because then its speed is not its
// precision's, and how a point differs from another outside the shown fields, such as in the cores that a rule gave it.
Table ResultTable(store::Store& store, const sweep::Sweep& sweep);

// Explains the table's marks and figures, one line each; empty if it has none.
std::string BelowTable(const Table& table);

}  // namespace ridgeline::cli
