// The largest magnitudes of matrices, as a separate pass for scales that depend on a whole matrix. Bytes: x, once.
// (8192, 4096) bf16: 67 MB, 16 us on an H200.
#include "engine/ops/cuda/codes.cuh"
#include "engine/ops/cuda/hadamard.cuh"

namespace ridgeline::engine {
namespace {

// Raises *amax to that of x.
template <bool kWhole, typename T>
__global__ void __launch_bounds__(kPatchThreads) Amax(Matrix<T> x, uint32_t* amax) {
  __shared__ uint32_t scratch[kPatchThreads / kWarp];
  const Place place = PlaceOfPatch();
  typename Matrix<T>::Words words;
  x.template Load<kWhole>(TileRow() + place.row, TileCol() + place.col, words);
  float values[kThreadRows][kThreadCols];
  x.ToFloats(words, values);
  RaiseAmax(amax, LargestOf(values), scratch, kPatchThreads / kWarp);
}

// The same, if `plain`, and raises amaxes[1] to that of x transformed.
__global__ void __launch_bounds__(kTileThreads) Amaxes(Matrix<__nv_bfloat16> x, bool plain, uint32_t* amaxes) {
  __shared__ uint32_t scratch[2][kTileThreads / kWarp];
  uint32_t largest = 0;
  uint32_t transformed = 0;
  ForUnits(x, [&](const Place& /*place*/, int64_t /*row*/, int64_t /*col*/, auto& values) {
    largest = max(largest, LargestOf(values));
    Transform(values);
    transformed = max(transformed, LargestOf(values));
  });
  if (plain) RaiseAmax(amaxes, largest, scratch[0]);
  RaiseAmax(amaxes + 1, transformed, scratch[1]);
}

}  // namespace

uint32_t* AmaxesOf(const Tensor& x, const Tensor& scratch, bool plain, bool transformed, const CudaRun& run) {
  auto* amaxes = run.Data<uint32_t>(scratch);
  CheckCuda(cudaMemsetAsync(amaxes, 0, 2 * sizeof(uint32_t), run.stream), "cudaMemsetAsync");
  if (transformed) {
    Launch(run.stream, TilesOf(x.rows, x.cols), Amaxes, Matrix<__nv_bfloat16>(run, x), plain, amaxes);
    return amaxes;
  }
  WithQuantizedType(x, [&](auto t) {
    using T = decltype(t);
    const Matrix<T> from(run, x);
    Launch(run.stream, TilesOf(x.rows, x.cols, kPatchThreads),
           WholePatches(x.rows, x.cols, from.vectors, {}, {}) ? Amax<true, T> : Amax<false, T>, from, amaxes);
  });
  return amaxes;
}

}  // namespace ridgeline::engine
