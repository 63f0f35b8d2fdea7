// What is wrong with the trainer that a sweep names, as far as it can be told before anything runs.
#pragma once

#include <cstdint>
#include <string>

#include "sweep/sweep.h"

namespace ridgeline {

// Throws Error(kInvalidInput), at the place of `launch:`, where this machine has no such program: for jobs that run
// here.
void RequireTrainer(const Sweep& sweep);

// The GPUs of a node that the launcher is asked for, in its own mapping; 0: none. `launch` is what holds for a point.
int64_t GpusOf(const Launch& launch);

// What the launcher is asked for that nothing would use, in a sentence: GPUs, for a trainer that computes on none.
// Empty where there is nothing of it.
std::string IdleRequest(const Launch& launch);

}  // namespace ridgeline
