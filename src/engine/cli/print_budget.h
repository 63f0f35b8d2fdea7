// ridgeline-train --budget.
#pragma once

#include "ridgeline/run.h"

namespace ridgeline {

// Prints the budget (engine/step/budget.h) of a rank's step on an H200, as it is described (engine/device/speed.h).
void PrintBudget(const RunSpec& spec);

}  // namespace ridgeline
