// Memory of GPUs that the processes below ours hold, for trainers that do not say it themselves.
#pragma once

#include <cstdint>
#include <memory>

#include "base/nvml.h"

namespace ridgeline {

class ProcessTree;

class DeviceMemory {
 public:
  // Never throws: without NVML nobody is seen to hold anything.
  explicit DeviceMemory(const Nvml& (*load)() = LoadNvml);

  // The most that all of `tree` together hold of one of this machine's GPUs now, as NVML says it of
  // each process: with its context and its libraries', and what an allocator keeps for later. Bytes. 0 where they hold
  // none or nobody knows: where NVML numbers processes otherwise than we do, as in most containers, none is ours.
  int64_t MostHeldOfOne(ProcessTree& tree) const;

 private:
  std::unique_ptr<const NvmlSession> session_;  // null where there is no NVML
};

}  // namespace ridgeline
