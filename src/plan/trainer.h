// What is wrong with the trainer that a sweep names, as far as it can be told before anything runs.
#pragma once

#include <string>

#include "sweep/sweep.h"

namespace ridgeline {

// Throws Error(kInvalidInput), at the place of `launch:`, where this machine has no such program: for jobs that run
// here.
void RequireTrainer(const Sweep& sweep);

// What the launcher is asked for that nothing would use, in a sentence: GPUs, for a trainer that computes on none.
// Empty where there is nothing of it. `launch` is what holds for a point.
std::string IdleRequest(const Launch& launch);

}  // namespace ridgeline
