#include "node/ranks.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "ridgeline/job_dir.h"
#include "run/spec.h"

namespace ridgeline::node {
namespace {

constexpr int64_t kMostNodes = 1 << 16;
constexpr const char* kHint =
    "start `ridgeline exec` once on each node, with RIDGELINE_NNODES, its own RIDGELINE_NODE_RANK, and MASTER_ADDR and "
    "MASTER_PORT of node 0; or with torchrun's PET_NNODES, PET_NODE_RANK, PET_MASTER_ADDR and PET_MASTER_PORT, as "
    "Kubeflow's operators set them";

// The first of these variables that is set and not empty; without one, the first name with an empty value.
std::pair<const char*, std::string> FirstOf(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return {name, value};
  }
  return {*names.begin(), ""};
}

int64_t Number(std::initializer_list<const char*> names, int64_t min, int64_t max) {
  const auto [name, text] = FirstOf(names);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= min && value <= max) return value;
  throw Error(ErrorKind::kInvalidInput, fmt::format("{} is '{}', and must be between {} and {}", name, text, min, max),
              kHint);
}

// The n-th of `parts` shares. If there are fewer cores than parts, each part has one core.
std::vector<int> ShareOf(const std::vector<int>& cores, int64_t part, int64_t parts) {
  const auto count = static_cast<int64_t>(cores.size());
  if (count == 0) return {};
  if (count < parts) return {cores[static_cast<size_t>(part % count)]};
  return {cores.begin() + count * part / parts, cores.begin() + count * (part + 1) / parts};
}

}  // namespace

Nodes NodesFromEnvironment() {
  Nodes nodes;
  const bool is_ours = std::getenv("RIDGELINE_NNODES") != nullptr;
  if (!is_ours && std::getenv("PET_NNODES") == nullptr) return nodes;
  nodes.count = Number({is_ours ? "RIDGELINE_NNODES" : "PET_NNODES"}, 1, kMostNodes);
  if (nodes.count == 1) return nodes;
  // An operator's RANK is its pod's index, as torchrun takes it, and not that of a process.
  nodes.rank = is_ours ? Number({"RIDGELINE_NODE_RANK"}, 0, nodes.count - 1)
                       : Number({"PET_NODE_RANK", "RANK"}, 0, nodes.count - 1);
  nodes.master_port =
      is_ours ? Number({"MASTER_PORT"}, 1, 65535) : Number({"PET_MASTER_PORT", "MASTER_PORT"}, 1, 65535);
  const auto [name, address] = is_ours ? FirstOf({"MASTER_ADDR"}) : FirstOf({"PET_MASTER_ADDR", "MASTER_ADDR"});
  if (address.empty()) throw Error(ErrorKind::kInvalidInput, fmt::format("{} is not set", name), kHint);
  nodes.master_address = address;
  return nodes;
}

std::vector<RankProcess> RanksHere(const RunSpec& spec, const Nodes& nodes, const std::vector<int>& cores) {
  const int64_t world = ProcessesOf(spec);
  if (world == 1 && nodes.rank > 0) return {};
  if (world > 1 && world % nodes.count != 0) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("{} nodes cannot share {} ranks evenly", nodes.count, spec.ranks),
                "let ranks be a multiple of the nodes");
  }
  const int64_t here = world == 1 ? 1 : world / nodes.count;
  std::vector<RankProcess> processes;
  for (int64_t local = 0; local < here; ++local) {
    RankProcess& process = processes.emplace_back();
    process.rank = nodes.rank * here + local;
    process.log = LogName(process.rank);
    process.cores = ShareOf(cores, local, here);
    process.environment = {{"RANK", std::to_string(process.rank)},
                           {"LOCAL_RANK", std::to_string(local)},
                           {"WORLD_SIZE", std::to_string(world)},
                           {"LOCAL_WORLD_SIZE", std::to_string(here)}};
    if (!process.cores.empty()) process.environment["OMP_NUM_THREADS"] = std::to_string(process.cores.size());
  }
  return processes;
}

}  // namespace ridgeline::node
