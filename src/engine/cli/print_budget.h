// ridgeline-train --budget.
#pragma once

#include "ridgeline/run.h"

namespace ridgeline {

// Prints the budget (engine/step/budget.h) of a rank's step on an H200, as it is described (engine/device/speed.h).
// Throws Error(kUsage) for a spec of another GPU.
void PrintBudget(RunSpec spec);

}  // namespace ridgeline
