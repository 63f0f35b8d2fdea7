#include "plan/memory_limit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/machine_memory.h"
#include "base/text.h"
#include "predict/memory_forecast.h"
#include "run/gpus.h"
#include "run/job.h"
#include "run/spec.h"
#include "sweep/job_description.h"

namespace ridgeline::plan {

NodeMemory MemoryHere(const std::filesystem::path& root) {
  const int64_t bytes = AvailableMemoryBytes(root);
  if (bytes == std::numeric_limits<int64_t>::max()) return {};
  return {std::max<int64_t>(1, bytes), "free on this machine"};
}

SlabLimit SlabLimitOf(const RunSpec& spec, const sweep::Launch& launch, const NodeMemory& node) {
  if (node.device == nullptr && spec.device == "meta") return {};
  const bool on_gpus = node.device != nullptr ? !node.device->is_cpu() : FindGpu(spec.gpu) != nullptr;
  if (on_gpus && node.is_said) return {SlabBytesOfGpu(node.bytes), node.basis + " a GPU"};
  if (node.device != nullptr && !node.is_said) return SlabLimitOn(spec, *node.device);
  if (const Gpu* gpu = FindGpu(spec.gpu); on_gpus) {
    return {SlabBytesOfGpu(gpu->usable_bytes), fmt::format("the memory of gpu: {}", gpu->name)};
  }
  NodeMemory least = node;
  const auto consider = [&](int64_t bytes, std::string basis) {
    if (bytes > 0 && (least.bytes == 0 || bytes < least.bytes)) least = {bytes, std::move(basis)};
  };
  if (const int64_t request = sweep::DescriptionOf(launch).memory_bytes; request > 0) {
    consider(request, fmt::format("{}: memory {}", launch.launcher, FormatBytes(request)));
  }
  consider(launch.memory_limit_bytes, "memory_limit " + FormatBytes(launch.memory_limit_bytes));
  if (least.bytes == 0) return {};
  const int64_t processes = std::max<int64_t>(1, ProcessesOf(spec) / launch.nodes);  // of each node
  if (processes > 1) least.basis += fmt::format(", shared by {} ranks", processes);
  // Another trainer's need besides its tensors is not known.
  const int64_t each =
      IsOurTrainer(launch) ? SlabBytesWithin(least.bytes, processes) : std::max<int64_t>(1, least.bytes / processes);
  return {each, least.basis};
}

SlabLimit SlabLimitOn(const RunSpec& spec, const predict::Device& device) {
  const int64_t bytes = std::llround(device.At("memory.size"));
  if (!device.is_cpu()) return {SlabBytesOfGpu(bytes), fmt::format("the memory of a GPU of {}", device.name)};
  const int64_t processes = ProcessesOf(spec);
  const std::string shared = processes > 1 ? fmt::format(", shared by {} ranks", processes) : "";
  return {SlabBytesWithin(bytes, processes), fmt::format("the memory of {}{}", device.name, shared)};
}

bool IsOurTrainer(const sweep::Launch& launch) { return !launch.definition && ridgeline::IsOurTrainer(launch.trainer); }

const predict::Framework* EstimatedAs(const RunSpec& spec, const sweep::Launch& launch, const NodeMemory& node,
                                      const predict::Frameworks* frameworks) {
  const bool on_gpus = node.device != nullptr ? !node.device->is_cpu() : spec.device == "cuda";
  if (frameworks == nullptr || !on_gpus || !launch.definition) return nullptr;
  const predict::Framework* framework = frameworks->Of(spec.trainer);
  if (framework == nullptr || framework->is_ours() || !predict::NotEstimated(*framework, spec).empty()) return nullptr;
  return framework;
}

int64_t SlabBytesWithin(int64_t memory_bytes, int64_t processes) {
  return std::max<int64_t>(1, memory_bytes / processes - predict::kProcessBaseBytes);
}

int64_t SlabBytesOfGpu(int64_t usable_bytes) { return std::max<int64_t>(1, usable_bytes - predict::kGpuContextBytes); }

}  // namespace ridgeline::plan
