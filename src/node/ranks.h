// The processes that a point runs as on this node: one, or its ranks' share of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline {

// The nodes that run a job together, as whoever starts `ridgeline exec` on each of them says it: RIDGELINE_NNODES,
// RIDGELINE_NODE_RANK, and MASTER_ADDR and MASTER_PORT, which name node 0 and a free port of it.
struct Nodes {
  int64_t count = 1;
  int64_t rank = 0;
  std::string master_address;  // with one node: empty, and a port is chosen for each point
  int64_t master_port = 0;
};

// One node where nothing is set. Throws Error(kInvalidInput) naming the variable that is wrong or missing.
Nodes NodesFromEnvironment();

struct RankProcess {
  int64_t rank = 0;        // of the run
  std::string log;         // the file's name: "log.txt", "log.1.txt", …
  std::vector<int> cores;  // its share of the node's; empty: as we are
  std::map<std::string, std::string> environment;
};

// Ranks that are processes are shared evenly by the nodes, node 0 having the first; any other point is one process, on
// node 0. `cores` are those the point may use here. Throws Error(kInvalidInput) where the nodes cannot share evenly.
std::vector<RankProcess> RanksHere(const RunSpec& spec, const Nodes& nodes, const std::vector<int>& cores);

}  // namespace ridgeline
