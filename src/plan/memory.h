// What memory a point may have: the one place that decides it, for `plan`, `run` and `render` alike, and says why.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "predict/device.h"
#include "predict/framework.h"
#include "ridgeline/run.h"
#include "sweep/sweep.h"

namespace ridgeline {

// What each node has on which points would run.
struct NodeMemory {
  int64_t bytes = 0;       // 0: not known before they run
  std::string basis = {};  // where that is known from, in words: "free on this machine"
  // A person said so of what they plan for: of points on GPUs it is what each GPU has, and is not shared.
  bool is_said = false;
  // What points are planned for as if they ran there, whatever their own `device` and `gpu`; nullptr: on what they say.
  std::shared_ptr<const Device> device = nullptr;
};

// The smaller of MemAvailable and what the cgroup leaves. `root` is "/" but in tests.
NodeMemory MemoryHere(const std::filesystem::path& root = "/");

// What each process of a point may take for its slab.
struct SlabLimit {
  int64_t bytes = 0;  // 0: as much as it likes, as far as is known
  std::string basis;  // in words: "memory_limit 8.00 GB, shared by 4 ranks"; empty: nothing limits it
};

// The least of what the node has, what the launcher's own settings ask for (`slurm: {memory: 64GB}`) and the
// memory_limit, shared by those of the point's ranks that are processes on one node, each of which needs
// kProcessBaseBytes beside its slab where our trainer runs it. `launch` is what holds for the point (LaunchOf); what
// its `launcher` is decides whose settings count. A point on a GPU has that GPU's, or what `node` is said to have; one
// on the meta device needs none. Planned for a device, a point has what SlabLimitOn says.
SlabLimit SlabLimitOf(const RunSpec& spec, const Launch& launch, const NodeMemory& node);

// The same on a described device, whatever the point's own `device`, `gpu` and launcher: of a rank on one of its GPUs,
// or of those that share its processors.
SlabLimit SlabLimitOn(const RunSpec& spec, const Device& device);

// Whether the engine's memory model says what the point's trainer will take: it is our own.
bool IsOurTrainer(const Launch& launch);

// The framework as which a point of another trainer is estimated on a GPU; nullptr: it is our own trainer's, or none
// knows it. `frameworks` may be nullptr, too.
const Framework* EstimatedAs(const RunSpec& spec, const Launch& launch, const NodeMemory& node,
                             const Frameworks* frameworks);

// What each of the processes that share `memory_bytes` has for its slab; at least 1.
int64_t SlabBytesWithin(int64_t memory_bytes, int64_t processes = 1);

// What a rank has for its slab on a GPU of which CUDA shows so much; at least 1.
int64_t SlabBytesOfGpu(int64_t usable_bytes);

}  // namespace ridgeline
