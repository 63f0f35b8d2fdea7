// NVIDIA's libraries that kernels call. A library is a table of functions and one that loads it, in files of its own.
#pragma once

#include "engine/device/cuda/cublaslt.h"
#include "engine/device/cuda/cudnn.h"

namespace ridgeline {

// Each is loaded where a kernel first asks for it. Tests put tables of their own in their place.
struct CudaLibraries {
  const CublasLt& (*cublaslt)() = LoadCublasLt;
  const Cudnn& (*cudnn)() = LoadCudnn;  // null: attention takes its own kernels
};

}  // namespace ridgeline
