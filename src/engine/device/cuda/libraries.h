// NVIDIA's libraries that kernels call. A library is a table of functions and one that loads it, in files of its own.
#pragma once

#include "engine/device/cuda/cublaslt.h"

namespace ridgeline {

// Each is loaded where a kernel first asks for it. Tests put tables of their own in their place.
struct CudaLibraries {
  const CublasLt& (*cublaslt)() = LoadCublasLt;
};

}  // namespace ridgeline
