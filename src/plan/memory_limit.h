// Decides what memory a point may have, and says why. `plan`, `run` and `render` all use this.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "predict/device.h"
#include "predict/framework.h"
#include "ridgeline/run.h"
#include "sweep/sweep.h"

namespace ridgeline::plan {

// The memory of each node on which points would run.
struct NodeMemory {
  int64_t bytes = 0;       // 0: not known before they run
  std::string basis = {};  // how that is known, in words: "free on this machine"
  // A person stated it for planning. For points on GPUs it is what each GPU has, and is not shared.
  bool is_said = false;
  // Points are planned as if they ran on this device, whatever their own `device` and `gpu`; nullptr: as they say.
  std::shared_ptr<const predict::Device> device = nullptr;
};

// Returns the smaller of MemAvailable and what the cgroup leaves. `root` differs from "/" only in tests.
NodeMemory MemoryHere(const std::filesystem::path& root = "/");

// What each process of a point may use for its slab.
struct SlabLimit {
  int64_t bytes = 0;  // 0: no limit is known
  std::string basis;  // in words: "memory_limit 8.00 GB, shared by 4 ranks"; empty: nothing limits it
};

// Returns the least of three limits: what the node has, what the launcher's own settings ask for (`slurm: {memory:
// 64GB}`), and memory_limit. The point's processes on one node share it. With our trainer, each of them needs
// kProcessBaseBytes besides its slab. `launch` is what applies to the point (LaunchOf), and its `launcher` decides
// whose settings count. A point on a GPU has that GPU's memory, or what `node` is said to have. A point on the meta
// device needs none. If points are planned for a device, SlabLimitOn applies.
SlabLimit SlabLimitOf(const RunSpec& spec, const sweep::Launch& launch, const NodeMemory& node);

// The same on a described device, whatever the point's own `device`, `gpu` and launcher: for a rank on one of its GPUs,
// or for the ranks that share its processors.
SlabLimit SlabLimitOn(const RunSpec& spec, const predict::Device& device);

// Returns whether the point's trainer is our own, so that the engine's memory model applies.
bool IsOurTrainer(const sweep::Launch& launch);

// Returns the framework with which another trainer's point is estimated on a GPU. Returns nullptr for our own trainer,
// or if no framework knows it. `frameworks` may be nullptr, too.
const predict::Framework* EstimatedAs(const RunSpec& spec, const sweep::Launch& launch, const NodeMemory& node,
                                      const predict::Frameworks* frameworks);

// What each of the processes that share `memory_bytes` has for its slab; at least 1.
int64_t SlabBytesWithin(int64_t memory_bytes, int64_t processes = 1);

// What a rank has for its slab on a GPU with this much memory according to CUDA; at least 1.
int64_t SlabBytesOfGpu(int64_t usable_bytes);

}  // namespace ridgeline::plan
