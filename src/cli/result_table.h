// The table `ridgeline run` ends with.
#pragma once

#include <string>

#include "base/table.h"
#include "store/store.h"
#include "sweep/sweep.h"

namespace ridgeline {

// A row a point, in the sweep's order, measured as the sweep says now: the fields that vary, how it ended, steady
// tokens/s, of repeats with half of the interval of 95 % that their steps leave it, the steps' median, mean and cv, of
// a GPU its tokens/s, TFLOP/s and MFU, planned peak, the most that it took of an accelerator's memory, where any point
// says it, what that counts, what was reserved of it, peak RSS, and what trainers say of themselves. A throughput that
// others disturbed has kDisturbedMark. Where there is something to note: that a run was emulated, as its speed is not
// its precision's, and what it has otherwise than another beside those fields, such as the cores that a rule gave it.
Table ResultTable(Store& store, const Sweep& sweep);

// What its marks and figures are, a line each; empty where it has none.
std::string BelowTable(const Table& table);

}  // namespace ridgeline
