#include "node/device_memory.h"

#include <sys/types.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.h"
#include "node/process_tree.h"

namespace ridgeline::node {
namespace {

constexpr size_t kMostProcesses = 4096;  // on one GPU

// Returns nothing if the driver does not say, or if there are now more processes than it said a moment ago.
std::vector<NvmlProcess> ProcessesOn(const Nvml& nvml, NvmlDevice device) {
  unsigned count = 0;
  if (nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, nullptr) != kNvmlInsufficientSize) return {};
  std::vector<NvmlProcess> found(std::min<size_t>(count + 8, kMostProcesses));  // leaves room for new processes
  count = static_cast<unsigned>(found.size());
  if (nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, found.data()) != kNvmlSuccess) return {};
  found.resize(std::min<size_t>(count, found.size()));
  return found;
}

}  // namespace

DeviceMemory::DeviceMemory(const Nvml& (*load)()) {
  try {
    session_ = std::make_unique<NvmlSession>(load);
  } catch (const Error&) {
    // No card, or no driver. A run that needs one reports it itself.
  }
}

int64_t DeviceMemory::MostHeldOfOne(ProcessTree& tree) const {
  if (session_ == nullptr || session_->nvml().nvmlDeviceGetComputeRunningProcesses_v3 == nullptr) return 0;
  const auto all = tree.All();
  if (!all) return 0;  // a sample is left out of the maximum
  const std::set<pid_t> ours(all->begin(), all->end());
  int64_t most = 0;
  for (NvmlDevice device : session_->Devices()) {
    if (device == nullptr) continue;
    int64_t held = 0;
    for (const NvmlProcess& process : ProcessesOn(session_->nvml(), device)) {
      const bool is_said = process.used_bytes != kNvmlValueNotAvailable;
      if (is_said && ours.contains(static_cast<pid_t>(process.pid))) held += static_cast<int64_t>(process.used_bytes);
    }
    most = std::max(most, held);
  }
  return most;
}

}  // namespace ridgeline::node
