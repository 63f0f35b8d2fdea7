// What a sweep's rules set for a launcher, checked by it before anything is submitted.
#pragma once

#include "launch/launcher.h"
#include "sweep/sweep.h"

namespace ridgeline {

// Has the launcher render, where it can, a job of each rule and of each set of rules that hold of a point together.
// Throws one Error(kInvalidInput) with what it says of each, at the place of the rule (of a set, its last).
void CheckRules(const Sweep& sweep, Launcher& launcher);

}  // namespace ridgeline
