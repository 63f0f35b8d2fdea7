// ridgeline-train --budget.
#pragma once

#include "ridgeline/run.h"

namespace ridgeline::engine {

// Prints the budget (engine/step/budget.h) of a rank's step on the spec's GPU, as it is described
// (engine/device/speed.h); on an H200 if the spec names none. Throws Error(kUsage) for a GPU without a description.
void PrintBudget(RunSpec spec);

}  // namespace ridgeline::engine
