// gpu_tests: runs CUDA's tests on the real GPU instead of the emulated machine (tests/engine/device/cuda_machine.h).
// Exits with 77 if there is none.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/device/cuda/runtime.h"
#include "engine/train/cuda_device.h"

int main(int argc, char** argv) {
  // Other programs test the CPU parts of these sources. A filter on the command line replaces this one.
  GTEST_FLAG_SET(filter, "*Cuda*");
  testing::InitGoogleTest(&argc, argv);
  if (!GTEST_FLAG_GET(list_tests)) {
    constexpr int kSkipped = 77;
    int gpus = 0;
    const cudaError_t error = cudaGetDeviceCount(&gpus);
    fmt::print("{}", ridgeline::engine::DescribeGpus());
    if (error != cudaSuccess || gpus == 0) {
      fmt::print("gpu_tests: there is no GPU here, so nothing was tested\n");
      return kSkipped;
    }
  }
  return RUN_ALL_TESTS();
}
