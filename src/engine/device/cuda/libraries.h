// NVIDIA's libraries that kernels call. Each library has a table of functions and a function that loads it, in files of
// its own.
#pragma once

#include "engine/device/cuda/cublaslt.h"
#include "engine/device/cuda/cudnn.h"

namespace ridgeline::engine {

// Each is loaded when a kernel first needs it. Tests supply their own tables.
struct CudaLibraries {
  const CublasLt& (*cublaslt)() = LoadCublasLt;
  const Cudnn& (*cudnn)() = LoadCudnn;  // null: attention uses our own kernels
};

}  // namespace ridgeline::engine
