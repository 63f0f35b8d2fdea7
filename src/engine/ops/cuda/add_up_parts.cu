#include "engine/ops/cuda/add_up_parts.h"

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/launch.h"
#include "engine/device/cuda/types.h"

namespace ridgeline {
namespace {

constexpr int kGroups = 8;

// A warp's width of columns a block; its thread (lane, group) takes every kGroups-th part of a column. 64 parts of 4096
// columns: 1 MB, which still lies in the L2 cache.
template <typename T>
__global__ void __launch_bounds__(kWarp* kGroups)
    AddUp(const float* parts, int64_t count, int64_t stride, T* out, int64_t cols, bool accumulate) {
  __shared__ float sums[kGroups][kWarp];
  const auto lane = threadIdx.x;
  const auto group = threadIdx.y;
  const int64_t c = int64_t{blockIdx.x} * kWarp + lane;
  float sum = 0;
  if (c < cols) {
    for (int64_t p = group; p < count; p += kGroups) sum += parts[p * stride + c];
  }
  sums[group][lane] = sum;
  __syncthreads();
  if (group != 0 || c >= cols) return;
  for (int g = 1; g < kGroups; ++g) sum += sums[g][lane];
  out[c] = FromFloat<T>(accumulate ? ToFloat(out[c]) + sum : sum);
}

}  // namespace

void AddUpParts(const CudaRun& run, const float* parts, int64_t count, int64_t stride, const Tensor& out,
                bool accumulate) {
  WithCudaType(out.dtype, [&](auto t) {
    using T = decltype(t);
    Launch(run.stream, {{BlocksFor(out.cols, kWarp)}, {kWarp, kGroups}}, AddUp<T>, parts, count, stride,
           run.Data<T>(out), out.cols, accumulate);
  });
}

}  // namespace ridgeline
