// Checks the trainer that a sweep names, as far as possible before anything runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/gpus_here.h"
#include "run/point.h"
#include "sweep/sweep.h"

namespace ridgeline::plan {

// Throws Error(kInvalidInput), at the place of `launch:`, if this machine has no such program. For jobs that run here.
void RequireTrainer(const sweep::Sweep& sweep);

// The same for the programs of definitions, as the points would start them.
void RequirePrograms(const sweep::Sweep& sweep, const std::vector<Point>& points);

// Throws the same if a scheduler must start a definition's ranks, but `launch`, as it applies to a point, does not use
// that scheduler.
void RequireScheduler(const sweep::Sweep& sweep, const sweep::Launch& launch);

// Returns the GPUs of a node that the launcher is asked for, as it says itself (sweep/job_description.h); 0: none.
// `launch` is what applies to a point.
int64_t GpusOf(const sweep::Launch& launch);

// Throws Error(kInvalidInput), at the place that asks for GPUs, if a point of our trainer has more ranks on a node than
// there are GPUs. Also throws if the point is for another kind of GPU than the one asked for.
void RequireGpus(const sweep::Sweep& sweep, const RunSpec& spec, const sweep::Launch& launch);

// Throws Error(kInfrastructure) if points of our trainer have device: cuda and `here`, this machine, has no GPU for
// them. For jobs that run here.
void RequireGpusHere(const sweep::Sweep& sweep, const std::vector<Point>& points, const GpusHere& here);

// Returns why points of our trainer with device: cuda cannot run: their jobs run the programs of this installation,
// which was built without the CUDA device. Empty if they can, as far as is known here.
std::string WhyNoCudaTrainer(const sweep::Sweep& sweep, const std::vector<Point>& points);
inline constexpr const char* kGetCudaTrainer =
    "install a build that has it (docs/install.md), or name a trainer of your own with `trainer:`";

// Returns a sentence for each mismatch between a point and what the launcher is asked for: GPUs that would stay idle,
// no GPUs for a point that needs them, a secret in plain text, and what the launcher itself warns of.
std::vector<std::string> OddRequests(const RunSpec& spec, const sweep::Launch& launch);

}  // namespace ridgeline::plan
