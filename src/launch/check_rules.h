// Checks what a sweep's rules set for a launcher, before anything is submitted.
#pragma once

#include "launch/launcher.h"
#include "sweep/sweep.h"

namespace ridgeline {

// If the launcher can render, has it render a job of each rule, and of each set of rules that apply to a point
// together. Throws one Error(kInvalidInput) with all that it reports, at the place of the rule (for a set, of its last
// rule).
void CheckRules(const Sweep& sweep, Launcher& launcher);

}  // namespace ridgeline
