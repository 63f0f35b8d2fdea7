// What a GPU's other figures are held against: the speed of a copy within its memory, and of a large product of bf16
// matrices, as cuBLASLt multiplies them for our steps.
//   gpu_ceilings [ROWS]     of the square matrices (8192)
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <exception>
#include <random>
#include <string_view>
#include <vector>

#include "engine/device/cuda/executor.h"
#include "engine/device/cuda/runtime.h"
#include "engine/device/layout.h"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/gemm.h"
#include "tests/engine/device/cuda_machine.h"

namespace ridgeline {
namespace {

constexpr int kTimes = 20;  // of which the fastest counts

// Bytes read and written a nanosecond.
double CopySpeed(int64_t bytes) {
  const DeviceBuffer from = NewDeviceBuffer(bytes);
  const DeviceBuffer to = NewDeviceBuffer(bytes);
  const CudaStream stream = NewCudaStream();
  const CudaEvent begin = NewCudaEvent(true);
  const CudaEvent end = NewCudaEvent(true);
  const auto size = static_cast<size_t>(bytes);
  CheckCuda(cudaMemsetAsync(from.get(), 1, size, stream.get()), "cudaMemsetAsync");
  float least_ms = 0;
  for (int i = 0; i < kTimes; ++i) {
    CheckCuda(cudaEventRecord(begin.get(), stream.get()), "cudaEventRecord");
    CheckCuda(cudaMemcpyAsync(to.get(), from.get(), size, cudaMemcpyDeviceToDevice, stream.get()), "cudaMemcpyAsync");
    CheckCuda(cudaEventRecord(end.get(), stream.get()), "cudaEventRecord");
    CheckCuda(cudaEventSynchronize(end.get()), "cudaEventSynchronize");
    float ms = 0;
    CheckCuda(cudaEventElapsedTime(&ms, begin.get(), end.get()), "cudaEventElapsedTime");
    least_ms = i == 0 ? ms : std::min(least_ms, ms);
  }
  return 2.0 * static_cast<double>(bytes) / (1e6 * static_cast<double>(least_ms));
}

// FLOPs a nanosecond.
double ProductSpeed(int64_t rows) {
  Trace trace(CudaDevice(CapabilityHere()));
  const auto matrix = [&] { return trace.Persistent(DType::kBF16, rows, rows, Category::kData); };
  const Tensor a = matrix();
  const Tensor b = matrix();
  Gemm(trace, a, Trans::kNo, b, Trans::kYes, matrix());
  const Layout layout = PlanLayout(trace);
  CudaKernelTable kernels;
  AddGemmCuda(kernels);
  const CudaLibraries libraries = LibrariesHere();
  CudaExecutor executor(trace, layout, kernels, {.libraries = &libraries});
  // Numbers from 1 to 2 and from -1 to -2, all bits of them drawn: of zeros a product takes less power, and less time.
  std::mt19937 random(1);
  std::vector<uint16_t> bits(static_cast<size_t>(rows * rows));
  for (const Tensor& tensor : {a, b}) {
    for (uint16_t& value : bits) value = static_cast<uint16_t>(0x3f80 | (random() & 0x807f));
    executor.Write<uint16_t>(tensor, 0, bits);
  }
  executor.EnableTiming();
  int64_t least_ns = 0;
  for (int i = 0; i < kTimes; ++i) {
    executor.Step({});
    const int64_t ns = executor.call_ns().front();
    least_ns = i == 0 ? ns : std::min(least_ns, ns);
  }
  return trace.calls().front().cost.flops / static_cast<double>(least_ns);
}

}  // namespace
}  // namespace ridgeline

int main(int argc, char** argv) {
  int64_t rows = 8192;
  const std::string_view given = argc > 1 ? argv[1] : "8192";
  if (std::from_chars(given.data(), given.data() + given.size(), rows).ec != std::errc() || rows < 1) {
    fmt::print(stderr, "usage: gpu_ceilings [ROWS]\n");
    return 2;
  }
  try {
    const int64_t bytes = 16 * rows * rows;
    fmt::print("copy {} bytes: {:.1f} GB/s\n", bytes, ridgeline::CopySpeed(bytes));
    fmt::print("multiply {0} x {0} by {0} x {0}, bf16: {1:.1f} TFLOP/s\n", rows, ridgeline::ProductSpeed(rows) / 1e3);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_ceilings: {}\n", error.what());
    return 1;
  }
  return 0;
}
