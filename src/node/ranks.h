// The processes of a point on this node: a single one, or its ranks' share.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline::node {

// The nodes that run a job together, from the environment of `ridgeline exec` on each of them: RIDGELINE_NNODES,
// RIDGELINE_NODE_RANK, and MASTER_ADDR and MASTER_PORT, which name node 0 and a free port of it. Without
// RIDGELINE_NNODES: torchrun's variables, as Kubeflow's operators set them: PET_NNODES, PET_NODE_RANK (else RANK),
// PET_MASTER_ADDR and PET_MASTER_PORT (else MASTER_ADDR and MASTER_PORT). A point says itself how many ranks it has, so
// PET_NPROC_PER_NODE and WORLD_SIZE are not read.
struct Nodes {
  int64_t count = 1;
  int64_t rank = 0;
  std::string master_address;  // empty with one node; then each point chooses a port
  int64_t master_port = 0;
};

// One node if nothing is set. Throws Error(kInvalidInput), which names the invalid or missing variable.
Nodes NodesFromEnvironment();

struct RankProcess {
  int64_t rank = 0;        // the rank in the run
  std::string log;         // the file's name: "log.txt", "log.1.txt", …
  std::vector<int> cores;  // its share of the node's cores; empty: unchanged
  std::map<std::string, std::string> environment;
};

// Divides ranks that are processes evenly among the nodes; node 0 has the first. Any other point is one process, on
// node 0. `cores`: those that the point may use here. Throws Error(kInvalidInput) if the nodes cannot share evenly.
std::vector<RankProcess> RanksHere(const RunSpec& spec, const Nodes& nodes, const std::vector<int>& cores);

}  // namespace ridgeline::node
