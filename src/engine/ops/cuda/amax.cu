// The largest magnitudes of matrices, which scales of a whole one depend on: a pass of its own.
// Bytes: x, once. (8192, 4096) bf16: 67 MB, 16 us on an H200.
#include "engine/ops/cuda/codes.cuh"
#include "engine/ops/cuda/hadamard.cuh"

namespace ridgeline {
namespace {

// Raises amaxes[0] to that of x, if `plain`, and amaxes[1] to that of x transformed.
template <bool kTransformed, typename T>
__global__ void __launch_bounds__(kTileThreads) Amaxes(Matrix<T> x, bool plain, uint32_t* amaxes) {
  __shared__ uint32_t scratch[2][kTileThreads / kWarp];
  uint32_t largest = 0;
  uint32_t transformed = 0;
  ForUnits(x, [&](const Place& /*place*/, int64_t /*row*/, int64_t /*col*/, auto& values) {
    for (const auto& row : values) {
      for (const float value : row) largest = max(largest, Magnitude(value));
    }
    if constexpr (kTransformed) {
      Transform(values);
      for (const auto& row : values) {
        for (const float value : row) transformed = max(transformed, Magnitude(value));
      }
    }
  });
  if (plain) RaiseAmax(amaxes, largest, scratch[0]);
  if constexpr (kTransformed) RaiseAmax(amaxes + 1, transformed, scratch[1]);
}

}  // namespace

uint32_t* AmaxesOf(const Tensor& x, const Tensor& scratch, bool plain, bool transformed, const CudaRun& run) {
  auto* amaxes = run.Data<uint32_t>(scratch);
  CheckCuda(cudaMemsetAsync(amaxes, 0, 2 * sizeof(uint32_t), run.stream), "cudaMemsetAsync");
  const LaunchShape shape = TilesOf(x.rows, x.cols);
  if (transformed) {
    Launch(run.stream, shape, Amaxes<true, __nv_bfloat16>, Matrix<__nv_bfloat16>(run, x), plain, amaxes);
    return amaxes;
  }
  WithQuantizedType(x, [&](auto t) {
    using T = decltype(t);
    Launch(run.stream, shape, Amaxes<false, T>, Matrix<T>(run, x), true, amaxes);
  });
  return amaxes;
}

}  // namespace ridgeline
