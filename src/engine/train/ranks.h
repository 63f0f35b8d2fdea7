// What a run's ranks settle between them, besides the step program.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/comm/communicator.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

// Returns the communicator of a spec. For `gloo` and `nccl`, this process's place among the ranks comes from its
// environment, and the ranks must agree on the spec and the trainer. Throws Error(kInvalidInput) if they do not, or if
// the environment does not fit the spec; Error(kInfrastructure) if a rank does not come.
std::unique_ptr<Communicator> ConnectRanks(const RunSpec& spec);

double MeanOverRanks(double value, Communicator& communicator);

// Fills in result.ranks. The result gets the largest peaks of memory, and the worst of what the ranks' GPUs suffered
// (clocks held down, memory errors, other processes on it). Says how many connections of strangers the ranks refused,
// if any. The power and speed of rank 0's GPU stay rank 0's.
//
// Each rank's own steps, which show a straggler, become evidence: `rank_step_ns` and `rank_p95_ns` (of the measured
// ones), and, if the ranks know it, `rank_wait_ns`, how long one waited for the others. They are JSON lists in the
// order of the ranks. `waited_ns` is this rank's, per measured step.
void GatherRankFigures(Communicator& communicator, std::optional<int64_t> waited_ns, RunResult& result);

}  // namespace ridgeline::engine
