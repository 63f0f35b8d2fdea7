// What is wrong with the trainer that a sweep names, as far as it can be told before anything runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/point.h"
#include "sweep/sweep.h"

namespace ridgeline {

// Throws Error(kInvalidInput), at the place of `launch:`, where this machine has no such program: for jobs that run
// here.
void RequireTrainer(const Sweep& sweep);

// The same of the programs of definitions, as the points would start them.
void RequirePrograms(const Sweep& sweep, const std::vector<Point>& points);

// Throws the same where a definition's ranks are to be started by a scheduler that `launch`, as it holds for a point,
// does not go through.
void RequireScheduler(const Sweep& sweep, const Launch& launch);

// The GPUs of a node that the launcher is asked for, in its own mapping; 0: none. `launch` is what holds for a point.
int64_t GpusOf(const Launch& launch);

// Where our trainer's point and what the launcher is asked for do not go together, in a sentence: GPUs that it would
// leave idle, or none for one that needs them. Empty where nothing is odd.
std::string OddRequest(const RunSpec& spec, const Launch& launch);

}  // namespace ridgeline
