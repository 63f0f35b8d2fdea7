// The GPU memory of the processes below ours, for trainers that do not report it themselves.
#pragma once

#include <cstdint>
#include <memory>

#include "base/nvml.h"

namespace ridgeline::node {

class ProcessTree;

class DeviceMemory {
 public:
  // Never throws. Without NVML it sees no memory.
  explicit DeviceMemory(const Nvml& (*load)() = LoadNvml);

  // The largest memory of a single GPU of this machine that the processes of `tree` together hold now. NVML reports it
  // for each process, including its context, its libraries' memory and what an allocator keeps for later. Bytes. 0 if
  // they hold none, or if it is unknown: if NVML numbers processes differently, as in most containers, it finds none of
  // ours.
  int64_t MostHeldOfOne(ProcessTree& tree) const;

 private:
  std::unique_ptr<const NvmlSession> session_;  // null without NVML
};

}  // namespace ridgeline::node
