// Starts kernels. <<<>>> is not C++, but cudaLaunchKernelEx is. So nvcc compiles a source for devices, and a C++
// compiler compiles the same source for tests without one.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "engine/device/cuda/runtime.h"

namespace ridgeline::engine {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;  // dynamic
};

// Converts arguments to the kernel's parameters here, on the host. Throws as CheckCuda. An empty grid, which CUDA
// refuses, launches nothing.
template <typename... Params, typename... Args>
void Launch(cudaStream_t stream, const LaunchShape& shape, void (*kernel)(Params...), Args&&... args) {
  if (shape.grid.x == 0 || shape.grid.y == 0) return;
  // More than 48 KiB must be requested. The kernel's static shared memory, which is not known here, counts, too.
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

// The number of blocks for `count` items, with `each` per block.
inline unsigned BlocksFor(int64_t count, int64_t each) { return static_cast<unsigned>((count + each - 1) / each); }

}  // namespace ridgeline::engine
