// ridgeline-train --budget.
#pragma once

#include "ridgeline/run.h"

namespace ridgeline {

// Prints the budget (engine/step/budget.h) of a rank's step on the spec's GPU, or where it names none on an H200, as it
// is described (engine/device/speed.h). Throws Error(kUsage) for a GPU that is not.
void PrintBudget(RunSpec spec);

}  // namespace ridgeline
