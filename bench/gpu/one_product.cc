#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "bench/gpu/measure.h"
#include "engine/ops/cuda/kernels.h"
#include "tests/engine/device/cuda_machine.h"

namespace ridgeline {
namespace {

const engine::CudaKernelTable& ProductKernels() {
  static const engine::CudaKernelTable table = [] {
    engine::CudaKernelTable t;
    engine::AddGemmCuda(t);
    return t;
  }();
  return table;
}

// Numbers of which the bits of `drawn` are, and the others those of `fixed`; the same ones over and over in a large
// tensor, its gaps included.
template <typename Bits>
void WritePattern(engine::CudaExecutor& executor, const engine::Tensor& tensor, Bits fixed, Bits drawn) {
  std::mt19937 random(1);
  std::vector<Bits> values(size_t{1} << 20);
  for (Bits& value : values) value = static_cast<Bits>(fixed | (random() & drawn));
  const int64_t elements = (tensor.rows - 1) * tensor.row_stride + tensor.cols;
  const auto at_once = static_cast<int64_t>(values.size());
  for (int64_t first = 0; first < elements; first += at_once) {
    const auto count = static_cast<size_t>(std::min(elements - first, at_once));
    executor.Write<Bits>(tensor, first, std::span<const Bits>(values).first(count));
  }
}

}  // namespace

OneProduct::OneProduct(const engine::Trace& trace) : layout_(engine::PlanLayout(trace)) {
  static const engine::CudaLibraries libraries = engine::LibrariesHere();
  executor_ = std::make_unique<engine::CudaExecutor>(trace, layout_, ProductKernels(),
                                                     engine::CudaOptions{.libraries = &libraries});
  executor_->EnableTiming();
}

// From 1 to 2, of either sign where there are signs: E4M3's codes from 1 to 2 are ordinary numbers in every format of
// 8 and of 4 bits, of scales too.
void OneProduct::Fill(const engine::Tensor& tensor) {
  switch (tensor.dtype) {
    case engine::DType::kF32:
      return WritePattern<uint32_t>(*executor_, tensor, 0x3f800000, 0x807fffff);
    case engine::DType::kF16:
      return WritePattern<uint16_t>(*executor_, tensor, 0x3c00, 0x83ff);
    case engine::DType::kBF16:
      return WritePattern<uint16_t>(*executor_, tensor, 0x3f80, 0x807f);
    default:
      return WritePattern<uint8_t>(*executor_, tensor, 0x38, 0x07);
  }
}

int64_t OneProduct::LeastNs(int most) {
  constexpr auto kMoment = std::chrono::milliseconds(100);
  executor_->Step({});
  int64_t before = executor_->call_ns().front();
  int64_t least = INT64_MAX;
  const auto end = std::chrono::steady_clock::now() + kMoment;
  for (int i = 0; i < most && (i == 0 || std::chrono::steady_clock::now() < end); ++i) {
    executor_->Step({});
    const int64_t now = executor_->call_ns().front();  // of all runs until now
    least = std::min(least, now - before);
    before = now;
  }
  return std::max<int64_t>(least, 1);
}

}  // namespace ridgeline
