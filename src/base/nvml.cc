#include "base/nvml.h"

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "base/shared_library.h"

namespace ridgeline {
namespace {

Error InWords(const Nvml& nvml, NvmlReturn said, std::string_view what) {
  std::string message = fmt::format("NVML: {}: {}", what, nvml.nvmlErrorString(said));
  std::string hint;
  switch (said) {
    case kNvmlDriverNotLoaded:
      hint = "no NVIDIA driver is loaded: load it (modprobe nvidia), or run on a node that has one";
      break;
    case kNvmlVersionMismatch:
      hint =
          "the driver was updated while its kernel module was in use: restart the node; in a container, mount the "
          "node's own driver";
      break;
    case kNvmlNoPermission:
      hint = "let this user read and write /dev/nvidia*, or ask the scheduler for a GPU";
      break;
    case kNvmlNotFound:
      hint = "the scheduler may have hidden the card from this job; nvidia-smi lists those that are there";
      break;
    case kNvmlGpuIsLost:
      hint = "the card fell off the bus: the node needs a restart, and perhaps another card; dmesg says more (Xid)";
      break;
    default:
      hint = "nvidia-smi may say more";
  }
  return {ErrorKind::kInfrastructure, std::move(message), std::move(hint)};
}

}  // namespace

const Nvml& LoadNvml() {
  static const Nvml table = [] {
    const SharedLibrary library("NVML", {"libnvidia-ml.so.1"},
                                "NVIDIA's driver (in a container, its capability `utility`)");
    Nvml found;
#define RIDGELINE_FIND(name, takes) library.Find(#name, found.name);
#define RIDGELINE_FIND_IF_THERE(name, takes) library.FindIfThere(#name, found.name);
    RIDGELINE_NVML_FUNCTIONS(RIDGELINE_FIND, RIDGELINE_FIND_IF_THERE)
#undef RIDGELINE_FIND
#undef RIDGELINE_FIND_IF_THERE
    library.Find("nvmlErrorString", found.nvmlErrorString);
    return found;
  }();
  return table;
}

NvmlSession::NvmlSession(const Nvml& (*load)()) : nvml_(load()) {
  const NvmlReturn said = nvml_.nvmlInit_v2();
  if (said != kNvmlSuccess) throw InWords(nvml_, said, "it cannot begin");
}

NvmlSession::~NvmlSession() { nvml_.nvmlShutdown(); }

NvmlDevice NvmlSession::Device(const std::string& pci_bus_id) const {
  NvmlDevice device = nullptr;
  const NvmlReturn said = nvml_.nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id.c_str(), &device);
  if (said != kNvmlSuccess) throw InWords(nvml_, said, fmt::format("the GPU at {}", pci_bus_id));
  return device;
}

std::vector<NvmlDevice> NvmlSession::Devices() const {
  unsigned count = 0;
  if (!Said(&Nvml::nvmlDeviceGetCount_v2, &count)) return {};
  std::vector<NvmlDevice> devices(count);
  for (unsigned i = 0; i < count; ++i) {
    if (!Said(&Nvml::nvmlDeviceGetHandleByIndex_v2, i, &devices[i])) devices[i] = nullptr;
  }
  return devices;
}

bool NvmlSession::IsMig(NvmlDevice device) const {
  unsigned current = 0;
  unsigned pending = 0;
  return Said(&Nvml::nvmlDeviceGetMigMode, device, &current, &pending) && current != 0;
}

}  // namespace ridgeline
