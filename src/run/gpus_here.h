// The GPUs of this machine, as NVIDIA's driver reports them. Asking needs neither CUDA nor a GPU.
#pragma once

#include <string>
#include <vector>

#include "base/nvml.h"

namespace ridgeline {

struct GpusHere {
  std::vector<std::string> names;  // the driver's names of the GPUs that CUDA_VISIBLE_DEVICES allows
  std::string problem;             // why there is none; empty if there is one
  std::string hint;
};

GpusHere FindGpusHere(const Nvml& (*load)() = LoadNvml);

}  // namespace ridgeline
