// What a GPU's other figures are held against: the speed of a copy within its memory, and of a large product of bf16
// matrices, as cuBLASLt multiplies them for our steps.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "bench/gpu/measure.h"
#include "engine/device/cuda/runtime.h"
#include "engine/ops/gemm.h"
#include "tests/engine/device/cuda_machine.h"

namespace ridgeline {
namespace {

constexpr int kTimes = 20;  // of which the fastest counts

// Bytes read and written a nanosecond, by copies of `bytes` from one end of `region` bytes to the other: what lies in a
// cache of the copy before is not what the next one reads.
double CopySpeed(int64_t bytes, int64_t region) {
  const engine::DeviceBuffer from = engine::NewDeviceBuffer(region);
  const engine::DeviceBuffer to = engine::NewDeviceBuffer(region);
  const engine::CudaStream stream = engine::NewCudaStream();
  const engine::CudaEvent begin = engine::NewCudaEvent(true);
  const engine::CudaEvent end = engine::NewCudaEvent(true);
  engine::CheckCuda(cudaMemsetAsync(from.get(), 1, static_cast<size_t>(region), stream.get()), "cudaMemsetAsync");
  float least_ms = 0;
  for (int i = 0; i < kTimes; ++i) {
    const int64_t at = i % (region / bytes) * bytes;
    engine::CheckCuda(cudaEventRecord(begin.get(), stream.get()), "cudaEventRecord");
    engine::CheckCuda(cudaMemcpyAsync(to.get() + at, from.get() + at, static_cast<size_t>(bytes),
                                      cudaMemcpyDeviceToDevice, stream.get()),
                      "cudaMemcpyAsync");
    engine::CheckCuda(cudaEventRecord(end.get(), stream.get()), "cudaEventRecord");
    engine::CheckCuda(cudaEventSynchronize(end.get()), "cudaEventSynchronize");
    float ms = 0;
    engine::CheckCuda(cudaEventElapsedTime(&ms, begin.get(), end.get()), "cudaEventElapsedTime");
    least_ms = i == 0 ? ms : std::min(least_ms, ms);
  }
  return 2.0 * static_cast<double>(bytes) / (1e6 * static_cast<double>(least_ms));
}

// FLOPs a nanosecond.
double ProductSpeed(int64_t rows) {
  engine::Trace trace(engine::CudaDevice(engine::CapabilityHere()));
  const auto matrix = [&] { return trace.Persistent(engine::DType::kBF16, rows, rows, engine::Category::kData); };
  const engine::Tensor a = matrix();
  const engine::Tensor b = matrix();
  engine::Gemm(trace, a, engine::Trans::kNo, b, engine::Trans::kYes, matrix());
  OneProduct product(trace);
  product.Fill(a);
  product.Fill(b);
  return trace.calls().front().cost.flops / static_cast<double>(product.LeastNs(kTimes));
}

}  // namespace

void PrintCeilings(int64_t rows) {
  // As large as what a step's kernels read and write, which short ones do not reach the speed of long ones by.
  const int64_t region = 16 * rows * rows;
  for (const int64_t part : {1, 4, 8, 16, 32}) {
    fmt::print("copy {} bytes: {:.1f} GB/s\n", region / part, CopySpeed(region / part, region));
  }
  fmt::print("multiply {0} x {0} by {0} x {0}, bf16: {1:.1f} TFLOP/s\n", rows, ProductSpeed(rows) / 1e3);
}

}  // namespace ridgeline
