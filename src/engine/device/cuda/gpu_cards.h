// Lists a machine's GPUs and whether they are sound, from NVML, for checks before a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/nvml.h"

namespace ridgeline::engine {

struct GpuCard {
  std::string name;
  std::string pci_bus_id;    // "00000000:1B:00.0"
  int64_t memory_bytes = 0;  // 0: unknown
  bool mig = false;          // divided into instances
  // Errors of its memory since the driver was loaded; nothing if it counts none.
  std::optional<int64_t> ecc_corrected, ecc_uncorrected;
  bool repair_pending = false;  // the next load of the driver takes pages or rows of its memory out of use
  bool repair_failed = false;   // some cannot be replaced, because it has no spare rows left
};

struct GpuCards {
  std::string driver;  // its version
  std::vector<GpuCard> cards;
  std::string problem;  // what is missing, in words; empty if nothing
  std::string hint;
};

// The GPUs of this machine that the job can see. Never throws.
GpuCards FindGpuCards(const Nvml& (*load)() = LoadNvml);

}  // namespace ridgeline::engine
