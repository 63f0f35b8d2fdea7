// The GPUs of this machine, as NVIDIA's driver says: who asks needs neither CUDA nor a GPU.
#pragma once

#include <string>
#include <vector>

#include "base/nvml.h"

namespace ridgeline {

struct GpusHere {
  std::vector<std::string> names;  // the driver's, of each that CUDA_VISIBLE_DEVICES leaves
  std::string problem;             // why there is none; empty where there is one
  std::string hint;
};

GpusHere FindGpusHere(const Nvml& (*load)() = LoadNvml);

}  // namespace ridgeline
