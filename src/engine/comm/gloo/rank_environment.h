// A process's place among the ranks of a run, as its environment says it: the variables that torchrun sets, and that
// `ridgeline exec` sets for its children.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace ridgeline {

struct RankEnvironment {
  int64_t rank = 0;   // RANK
  int64_t world = 1;  // WORLD_SIZE
  // MASTER_ADDR, of the machine rank 0 runs on; 127.0.0.1 where LOCAL_WORLD_SIZE says that all ranks run on this one.
  std::string master_address;
  int64_t master_port = 0;  // MASTER_PORT, or the one above where torchrun listens there itself: rank 0 listens
  // RIDGELINE_COMM_TIMEOUT_S (300): how long a rank may keep the others waiting before it counts as lost.
  double timeout_s = 300;
  // RIDGELINE_SECRET_FILE: by what the ranks know each other (secret.h). Ranks without one meet on the loopback
  // interface and nowhere else. It may come later than the ranks that node 0 does not start.
  std::filesystem::path secret_file = {};
};

// Nothing where neither RANK nor WORLD_SIZE is set. Throws Error(kInvalidInput) naming a variable that is missing or
// wrong.
std::optional<RankEnvironment> ReadRankEnvironment();

// LOCAL_RANK, or 0: which of the ranks on its machine this process is. Throws Error(kInvalidInput) for what is no
// number.
int64_t LocalRank();

// RANK, or 0: who may print and write results. Never throws.
bool IsFirstRank();

}  // namespace ridgeline
