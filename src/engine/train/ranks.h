// What a run's ranks settle between them, around the step program.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

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
//
// As evidence each rank's own steps, which tell a straggler: `rank_step_ns` and `rank_p95_ns` (of the measured ones),
// and, where the ranks know it, `rank_wait_ns`, how much of one was waiting for the others: JSON lists in the order of
// the ranks. `waited_ns` is this rank's, a measured step.
void GatherRankFigures(Communicator& communicator, std::optional<int64_t> waited_ns, RunResult& result);

}  // namespace ridgeline
