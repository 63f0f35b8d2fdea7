// Starts kernels. <<<>>> is not C++ and cudaLaunchKernelEx is, so one source is compiled by nvcc for devices and by a
// C++ compiler for tests without one.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "engine/device/cuda/runtime.h"

namespace ridgeline {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;  // dynamic
};

// Arguments are converted to the kernel's parameters here, on the host. Throws as CheckCuda does. A grid of no
// blocks, which CUDA refuses, has nothing to do.
template <typename... Params, typename... Args>
void Launch(cudaStream_t stream, const LaunchShape& shape, void (*kernel)(Params...), Args&&... args) {
  if (shape.grid.x == 0 || shape.grid.y == 0) return;
  // More than 48 KiB have to be asked for, and what the kernel has beside, which is not known here, counts, too.
  if (shape.shared_bytes > 0) {
    CheckCuda(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared_bytes)),
        "cudaFuncSetAttribute");
  }
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  CheckCuda(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...), "cudaLaunchKernelEx");
}

// Blocks for `count` things, `each` a block.
inline unsigned BlocksFor(int64_t count, int64_t each) { return static_cast<unsigned>((count + each - 1) / each); }

}  // namespace ridgeline
