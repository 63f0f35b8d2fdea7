// What is wrong with the trainer that a sweep names, as far as it can be told before anything runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/gpus_here.h"
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

// The GPUs of a node that the launcher is asked for, in its own mapping, as `gpus: 8`, `gpus: "h100:8"` or `gres:
// "gpu:8"`; 0: none. `launch` is what holds for a point.
int64_t GpusOf(const Launch& launch);

// Throws Error(kInvalidInput), at the place of what asks for GPUs, where our trainer's point has more ranks on a node
// than that has GPUs for them, or is to be of another GPU than the one asked for.
void RequireGpus(const Sweep& sweep, const RunSpec& spec, const Launch& launch);

// Throws Error(kInfrastructure) where our trainer's points have device: cuda and `here`, this machine, has no GPU for
// them: for jobs that run here.
void RequireGpusHere(const Sweep& sweep, const std::vector<Point>& points, const GpusHere& here);

// Where a point and what the launcher is asked for do not go together, a sentence each: GPUs that it would leave idle,
// or none for one that needs them; what is mounted into no container; a secret in plain text.
std::vector<std::string> OddRequests(const RunSpec& spec, const Launch& launch);

}  // namespace ridgeline
