// A process's place among the ranks of a run, as its environment says it: the variables that torchrun sets, and that
// `ridgeline exec` sets for its children.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ridgeline {

struct RankEnvironment {
  int64_t rank = 0;            // RANK
  int64_t world = 1;           // WORLD_SIZE
  std::string master_address;  // MASTER_ADDR: of the machine rank 0 runs on
  int64_t master_port = 0;     // MASTER_PORT, or the one above where torchrun listens there itself: rank 0 listens
  // RIDGELINE_COMM_TIMEOUT_S (300): how long a rank may keep the others waiting before it counts as lost.
  double timeout_s = 300;
};

// Nothing where neither RANK nor WORLD_SIZE is set. Throws Error(kInvalidInput) naming a variable that is missing or
// wrong.
std::optional<RankEnvironment> ReadRankEnvironment();

// RANK, or 0: who may print and write results. Never throws.
bool IsFirstRank();

}  // namespace ridgeline
