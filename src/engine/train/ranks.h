// What a run's ranks settle between them, around the step program.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/comm/communicator.h"
#include "ridgeline/run.h"

namespace ridgeline {

// The communicator of a spec: for `gloo` and `nccl`, this process's place among the ranks is read from its environment,
// and the ranks must agree on the spec and the trainer. Throws Error(kInvalidInput) where they do not, or where the
// environment does not fit the spec; Error(kInfrastructure) where a rank does not come.
std::unique_ptr<Communicator> ConnectRanks(const RunSpec& spec);

double MeanOverRanks(double value, Communicator& communicator);

// Fills in result.ranks, makes the largest peaks of memory the result's, and of what the ranks' GPUs suffered (clocks
// held down, errors of memory, others on it) the worst; says how many connections of strangers the ranks refused, where
// there were any. What rank 0's GPU drew and how fast it was stays rank 0's.
void GatherRankFigures(Communicator& communicator, RunResult& result);

}  // namespace ridgeline
