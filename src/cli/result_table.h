// The table `ridgeline run` ends with.
#pragma once

#include "base/table.h"
#include "store/store.h"
#include "sweep/sweep.h"

namespace ridgeline {

// A row a point, in the sweep's order, measured as the sweep says now: the fields that vary, how it ended, steady
// tokens/s, planned peak and peak RSS; and, where some were emulated, which: their speed is not their precision's.
Table ResultTable(Store& store, const Sweep& sweep);

}  // namespace ridgeline
