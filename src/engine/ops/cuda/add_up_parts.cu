#include "engine/ops/cuda/add_up_parts.h"

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/launch.h"
#include "engine/device/cuda/registers.cuh"
#include "engine/device/cuda/types.h"

namespace ridgeline::engine {
namespace {

constexpr int kGroups = 32;
constexpr int kLoadsAtOnce = 8;

// A block has a warp's width of columns. Its thread (lane, group) takes every kGroups-th part of a column, several at a
// time, because only their latency takes time: 528 parts of 2048 columns are 4 MB, which are still in the L2 cache.
template <typename T>
__global__ void __launch_bounds__(kWarp* kGroups)
    AddUp(const float* parts, int64_t count, int64_t stride, T* out, T* next, int64_t cols, bool accumulate) {
  __shared__ float sums[kGroups][kWarp];
  const auto lane = threadIdx.x;
  const auto group = threadIdx.y;
  const int64_t c = int64_t{blockIdx.x} * kWarp + lane;
  if (blockIdx.y > 0) {
    parts += count * stride;
    out = next;
  }
  float sum = 0;
  if (c < cols) {
    for (int64_t first = group; first < count; first += int64_t{kLoadsAtOnce} * kGroups) {
      float values[kLoadsAtOnce];
      Unrolled<kLoadsAtOnce>([&](auto i) {
        const int64_t p = first + i * kGroups;
        values[i] = p < count ? parts[p * stride + c] : 0.0F;
      });
      for (const float value : values) sum += value;
    }
  }
  sums[group][lane] = sum;
  __syncthreads();
  if (group != 0 || c >= cols) return;
  for (int g = 1; g < kGroups; ++g) sum += sums[g][lane];
  out[c] = FromFloat<T>(accumulate ? ToFloat(out[c]) + sum : sum);
}

}  // namespace

void AddUpParts(const CudaRun& run, const float* parts, int64_t count, int64_t stride, const Tensor& out,
                bool accumulate, const Tensor& next) {
  WithCudaType(out.dtype, [&](auto t) {
    using T = decltype(t);
    const unsigned outs = next.defined() ? 2 : 1;
    Launch(run.stream, {{BlocksFor(out.cols, kWarp), outs}, {kWarp, kGroups}}, AddUp<T>, parts, count, stride,
           run.Data<T>(out), outs == 2 ? run.Data<T>(next) : nullptr, out.cols, accumulate);
  });
}

}  // namespace ridgeline::engine
