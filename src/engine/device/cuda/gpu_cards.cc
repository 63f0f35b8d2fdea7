#include "engine/device/cuda/gpu_cards.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/error.h"

namespace ridgeline::engine {
namespace {

constexpr unsigned kTextBytes = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE, the longest

std::optional<int64_t> EccErrorsOf(const NvmlSession& session, NvmlDevice device, NvmlEccError kind) {
  unsigned long long count = 0;
  if (!session.Said(&Nvml::nvmlDeviceGetTotalEccErrors, device, kind, kNvmlSinceDriverLoaded, &count)) return {};
  return static_cast<int64_t>(count);
}

GpuCard CardOf(const NvmlSession& session, NvmlDevice device) {
  GpuCard card;
  std::array<char, kTextBytes> name{};
  if (session.Said(&Nvml::nvmlDeviceGetName, device, name.data(), kTextBytes - 1)) card.name = name.data();
  NvmlPci pci{};
  if (session.Said(&Nvml::nvmlDeviceGetPciInfo_v3, device, &pci)) {
    card.pci_bus_id.assign(pci.bus_id, ::strnlen(pci.bus_id, sizeof(pci.bus_id)));
  }
  NvmlMemory memory;
  if (session.Said(&Nvml::nvmlDeviceGetMemoryInfo_v2, device, &memory)) {
    card.memory_bytes = static_cast<int64_t>(memory.total);
  }
  card.mig = session.IsMig(device);
  card.ecc_corrected = EccErrorsOf(session, device, kNvmlCorrected);
  card.ecc_uncorrected = EccErrorsOf(session, device, kNvmlUncorrected);
  // Older cards retire pages, newer ones remap rows. Each reports only its own kind.
  int pages_pending = 0;
  if (session.Said(&Nvml::nvmlDeviceGetRetiredPagesPendingStatus, device, &pages_pending)) {
    card.repair_pending = pages_pending != 0;
  }
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned rows_pending = 0;
  unsigned failed = 0;
  if (session.Said(&Nvml::nvmlDeviceGetRemappedRows, device, &corrected, &uncorrected, &rows_pending, &failed)) {
    card.repair_pending = card.repair_pending || rows_pending != 0;
    card.repair_failed = failed != 0;
  }
  return card;
}

}  // namespace

GpuCards FindGpuCards(const Nvml& (*load)()) {
  GpuCards found;
  try {
    const NvmlSession session(load);
    std::array<char, kTextBytes> driver{};
    if (session.Said(&Nvml::nvmlSystemGetDriverVersion, driver.data(), kTextBytes - 1)) found.driver = driver.data();
    const std::vector<NvmlDevice> devices = session.Devices();
    for (NvmlDevice device : devices) {
      if (device != nullptr) found.cards.push_back(CardOf(session, device));
    }
    if (found.cards.size() < devices.size()) {
      found.problem = fmt::format("{} of {} GPUs cannot be asked", devices.size() - found.cards.size(), devices.size());
      found.hint = "this user may not open them, or they fell off the bus; dmesg says more (Xid)";
    } else if (devices.empty()) {
      found.problem = "the driver sees no GPU";
      found.hint = "the scheduler may have given this job none";
    }
  } catch (const Error& e) {
    found.problem = e.message();
    found.hint = e.hint();
  }
  return found;
}

}  // namespace ridgeline::engine
