#include "engine/ops/cuda/gemm_operands.h"

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/launch.h"
#include "engine/ops/quantize.h"

namespace ridgeline::engine {
namespace {

constexpr int kOperandThreads = 256;
constexpr int kTileBytes = static_cast<int>(kScaleTileRows * kScaleTileCols);

__device__ int64_t ThisThread() { return static_cast<int64_t>(blockIdx.x) * kOperandThreads + threadIdx.x; }

// A thread makes four neighbours, which are contiguous in a tile, too. Moves 2 bytes per scale: for (8192, 14336) in
// blocks of 32, 7.3 MB, 2 us.
__global__ void __launch_bounds__(kOperandThreads)
    TileScalesKernel(const uint8_t* scales, int64_t rows, int64_t cols, int64_t stride, int64_t tile_cols,
                     int64_t quads, uint8_t* tiles) {
  const int64_t i = ThisThread();
  if (i >= quads) return;
  const int64_t row = i / tile_cols;
  const int64_t tile_col = i % tile_cols;
  Vec<uint8_t, kScaleTileCols> quad{};
  if (row < rows) {
    for (int64_t k = 0; k < kScaleTileCols; ++k) {
      const int64_t col = tile_col * kScaleTileCols + k;
      if (col < cols) quad.of[k] = scales[row * stride + col];
    }
  }
  const int64_t tile = row / kScaleTileRows * tile_cols + tile_col;
  const int64_t in_tile = row % 32 * 16 + row % kScaleTileRows / 32 * 4;
  StoreVec(tiles + tile * kTileBytes + in_tile, quad);
}

__global__ void FactorsKernel(const float* a_scale, const float* b_scale, float beta, float* factors) {
  float alpha = a_scale == nullptr ? 1.0F : *a_scale;
  if (b_scale != nullptr) alpha *= *b_scale;
  factors[0] = alpha;
  factors[1] = beta;
}

__device__ float Number(const void* data, DType dtype, int64_t i) {
  if (dtype == DType::kF32) return static_cast<const float*>(data)[i];
  if (dtype == DType::kBF16) return ToFloat(static_cast<const __nv_bfloat16*>(data)[i]);
  return ToFloat(static_cast<const __half*>(data)[i]);
}
__device__ void Store(void* data, DType dtype, int64_t i, float value) {
  if (dtype == DType::kF32) {
    static_cast<float*>(data)[i] = value;
  } else if (dtype == DType::kBF16) {
    static_cast<__nv_bfloat16*>(data)[i] = FromFloat<__nv_bfloat16>(value);
  } else {
    static_cast<__half*>(data)[i] = FromFloat<__half>(value);
  }
}

// For products that no model here has, so one kernel serves all dtypes.
__global__ void __launch_bounds__(kOperandThreads)
    FinishKernel(const float* sums, const void* bias, DType bias_dtype, bool accumulate, int64_t count, int64_t cols,
                 int64_t stride, DType dtype, void* c) {
  const int64_t i = ThisThread();
  if (i >= count) return;
  const int64_t row = i / cols;
  const int64_t col = i % cols;
  const int64_t at = row * stride + col;
  float value = sums[i];
  if (accumulate) value += Number(c, dtype, at);
  if (bias != nullptr) value += Number(bias, bias_dtype, col);
  Store(c, dtype, at, value);
}

// The beginning of a tensor of any dtype.
std::byte* BytesOf(const CudaRun& run, Tensor t) {
  t.offset *= SizeOf(t.dtype);
  return run.Data<std::byte>(t);
}
LaunchShape ThreadsFor(int64_t count) { return {dim3(BlocksFor(count, kOperandThreads)), dim3(kOperandThreads)}; }

}  // namespace

void TileScales(const CudaRun& run, const Tensor& scales, const Tensor& tiles) {
  const int64_t tile_cols = tiles.cols / kScaleTileCols;
  const int64_t quads = tiles.rows * tile_cols;
  Launch(run.stream, ThreadsFor(quads), TileScalesKernel, run.Data<uint8_t>(scales), scales.rows, scales.cols,
         scales.row_stride, tile_cols, quads, run.Data<uint8_t>(tiles));
}

void ProductFactors(const CudaRun& run, const Tensor& a_scale, const Tensor& b_scale, float beta,
                    const Tensor& factors) {
  const auto scale = [&](const Tensor& t) { return t.defined() ? run.Data<float>(t) : nullptr; };
  Launch(run.stream, {dim3(1), dim3(1)}, FactorsKernel, scale(a_scale), scale(b_scale), beta, run.Data<float>(factors));
}

void FinishProduct(const CudaRun& run, const Tensor& sums, const Tensor& bias, bool accumulate, const Tensor& c) {
  Launch(run.stream, ThreadsFor(c.elements()), FinishKernel, run.Data<float>(sums),
         bias.defined() ? BytesOf(run, bias) : nullptr, bias.dtype, accumulate, c.elements(), c.cols, c.row_stride,
         c.dtype, BytesOf(run, c));
}

}  // namespace ridgeline::engine
