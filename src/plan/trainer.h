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

// Where our trainer's point and what the launcher is asked for do not go together, in a sentence: GPUs that it would
// leave idle, or none for one that needs them. Empty where nothing is odd.
std::string OddRequest(const RunSpec& spec, const Launch& launch);

}  // namespace ridgeline
