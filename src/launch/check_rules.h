// What a sweep's rules set for a launcher, checked by it before anything is submitted.
#pragma once

#include "launch/launcher.h"
#include "sweep/sweep.h"

namespace ridgeline {

// Has the launcher render a job with each rule, where it can render. Throws one Error(kInvalidInput) with what it says
// of each, at the rule's place in the file. Rules that hold together are checked with the jobs that they are for.
void CheckRules(const Sweep& sweep, Launcher& launcher);

}  // namespace ridgeline
