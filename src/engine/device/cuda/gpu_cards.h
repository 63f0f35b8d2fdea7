// What GPUs a machine has, and whether they are sound, as NVML says: for whoever looks before a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/nvml.h"

namespace ridgeline {

struct GpuCard {
  std::string name;
  std::string pci_bus_id;    // "00000000:1B:00.0"
  int64_t memory_bytes = 0;  // 0: it is not said
  bool mig = false;          // cut into instances
  // Errors of its memory since the driver was loaded; nothing where it counts none.
  std::optional<int64_t> ecc_corrected, ecc_uncorrected;
  bool repair_pending = false;  // pages or rows of its memory will be taken out of use when the driver is loaded again
  bool repair_failed = false;   // and some cannot be: it has no spare rows left
};

struct GpuCards {
  std::string driver;  // its version
  std::vector<GpuCard> cards;
  std::string problem;  // what is missing, in words; empty: nothing
  std::string hint;
};

// Of this machine, as far as the job may see it. Never throws.
GpuCards FindGpuCards(const Nvml& (*load)() = LoadNvml);

}  // namespace ridgeline
