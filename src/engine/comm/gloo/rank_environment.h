// A process's place among the ranks of a run, from its environment: the variables that torchrun sets, and that
// `ridgeline exec` sets for its children.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace ridgeline::engine {

struct RankEnvironment {
  int64_t rank = 0;   // RANK
  int64_t world = 1;  // WORLD_SIZE
  // MASTER_ADDR: the machine of rank 0; 127.0.0.1 if LOCAL_WORLD_SIZE says that all ranks run on this one.
  std::string master_address;
  int64_t master_port = 0;  // where rank 0 listens: MASTER_PORT, or the one above if torchrun itself listens there
  // RIDGELINE_COMM_TIMEOUT_S (300): how long a rank may keep the others waiting before it counts as lost, in seconds.
  double timeout_s = 300;
  // RIDGELINE_SECRET_FILE: the secret by which the ranks recognize each other (secret.h). Ranks without one meet only
  // on the loopback interface. Ranks that node 0 does not start may start before the file exists.
  std::filesystem::path secret_file = {};
};

// Returns nothing if neither RANK nor WORLD_SIZE is set. Throws Error(kInvalidInput), naming a variable that is missing
// or wrong.
std::optional<RankEnvironment> ReadRankEnvironment();

// Returns LOCAL_RANK, or 0: which of the ranks on its machine this process is. Throws Error(kInvalidInput) if it is not
// a number.
int64_t LocalRank();

// Returns LOCAL_WORLD_SIZE, or 1: the number of ranks on this machine. Throws likewise.
int64_t LocalRanks();

// Whether RANK is 0 or not set: that rank prints and writes results. Never throws.
bool IsFirstRank();

}  // namespace ridgeline::engine
