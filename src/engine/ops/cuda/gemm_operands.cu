#include "engine/ops/cuda/gemm_operands.h"

#include <cuda_fp4.h>
#include <cuda_fp8.h>

#include "base/error.h"
#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/launch.h"
#include "engine/ops/quantize.h"

namespace ridgeline {
namespace {

constexpr int kThreads = 256;
constexpr int kEach = 8;  // codes of a thread: 16 bytes of bf16
constexpr int kTileBytes = static_cast<int>(kScaleTileRows * kScaleTileCols);

__device__ int64_t ThisThread() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }

template <Format kFormat>
__device__ float DecodeCode(uint8_t code) {
  if constexpr (kFormat == Format::kE2M1) {
    return __half2float(__half(__nv_cvt_fp4_to_halfraw(code, __NV_E2M1)));
  } else {
    constexpr auto kKind = kFormat == Format::kE4M3 ? __NV_E4M3 : __NV_E5M2;
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, kKind)));
  }
}
template <int kBlock>
__device__ float DecodeScale(uint8_t code) {
  if constexpr (kBlock == 16) return DecodeCode<Format::kE4M3>(code);
  // E8M0: fp32's exponent, of which 0 stands for numbers below 2^-126.
  if (code == 0) return __uint_as_float(0x00400000U);
  return __uint_as_float(code == 0xff ? 0x7fc00000U : static_cast<unsigned>(code) << 23);
}

// Codes lie without gaps, and whole blocks in a row, so an element's number says which block it is in.
// Moves 3 bytes an element of 8 bits, 2.5 of 4 bits, and scales: (8192, 14336) 352 MB or 294 MB, 82 us or 68 us.
template <Format kFormat, int kBlock>
__global__ void __launch_bounds__(kThreads)
    DequantizeKernel(const uint8_t* codes, const uint8_t* scales, int64_t count, bool aligned, __nv_bfloat16* numbers) {
  constexpr int kPerByte = kFormat == Format::kE2M1 ? 2 : 1;
  constexpr int kBytes = kEach / kPerByte;
  const int64_t first = ThisThread() * kEach;
  if (first >= count) return;
  const int64_t here = count - first < kEach ? count - first : kEach;
  const uint8_t* from = codes + first / kPerByte;
  Vec<uint8_t, kBytes> bytes{};
  if (aligned && here == kEach) {
    bytes = LoadVec<uint8_t, kBytes>(from);
  } else {
    for (int i = 0; i < kBytes; ++i) {
      if (i * kPerByte < here) bytes.of[i] = from[i];
    }
  }
  float scale = 1;
  if constexpr (kBlock > 1) scale = DecodeScale<kBlock>(scales[first / kBlock]);
  Vec<__nv_bfloat16, kEach> out;
  for (int i = 0; i < kEach; ++i) {
    uint8_t code = bytes.of[i / kPerByte];
    if constexpr (kPerByte == 2) code = i % 2 == 0 ? code & 0xf : code >> 4;
    float value = DecodeCode<kFormat>(code);
    if constexpr (kBlock > 1) value *= scale;
    out.of[i] = FromFloat<__nv_bfloat16>(value);
  }
  if (here == kEach) {
    StoreVec(numbers + first, out);
  } else {
    for (int i = 0; i < kEach; ++i) {
      if (i < here) numbers[first + i] = out.of[i];
    }
  }
}

// A thread makes four neighbours, which lie together in a tile too. Moves 2 bytes a scale: of (8192, 14336) in blocks
// of 32 7.3 MB, 2 us.
__global__ void __launch_bounds__(kThreads) TileScalesKernel(const uint8_t* scales, int64_t rows, int64_t cols,
                                                             int64_t tile_cols, int64_t quads, uint8_t* tiles) {
  const int64_t i = ThisThread();
  if (i >= quads) return;
  const int64_t row = i / tile_cols;
  const int64_t tile_col = i % tile_cols;
  Vec<uint8_t, kScaleTileCols> quad{};
  if (row < rows) {
    for (int64_t k = 0; k < kScaleTileCols; ++k) {
      const int64_t col = tile_col * kScaleTileCols + k;
      if (col < cols) quad.of[k] = scales[row * cols + col];
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

// Of products that no model here has, so one kernel for all dtypes.
__global__ void __launch_bounds__(kThreads)
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

// Where a tensor of any dtype begins.
std::byte* BytesOf(const CudaRun& run, Tensor t) {
  t.offset *= SizeOf(t.dtype);
  return run.Data<std::byte>(t);
}
LaunchShape ThreadsFor(int64_t count) { return {dim3(BlocksFor(count, kThreads)), dim3(kThreads)}; }

}  // namespace

void DequantizeToBf16(const CudaRun& run, const Quantizer& quantizer, const StoredCodes& q, const Tensor& numbers) {
  const auto* codes = run.Data<uint8_t>(q.codes);
  const auto* scales = q.scales.defined() ? run.Data<uint8_t>(q.scales) : nullptr;
  const auto start = [&](auto kernel, int bytes) {
    const bool aligned = reinterpret_cast<uintptr_t>(codes) % static_cast<size_t>(bytes) == 0;
    Launch(run.stream, ThreadsFor((numbers.elements() + kEach - 1) / kEach), kernel, codes, scales, numbers.elements(),
           aligned, run.Data<__nv_bfloat16>(numbers));
  };
  if (quantizer.format == Format::kE2M1) {
    start(DequantizeKernel<Format::kE2M1, 16>, kEach / 2);
  } else if (quantizer.scaling == Scaling::kBlock32) {
    start(DequantizeKernel<Format::kE4M3, 32>, kEach);
  } else if (quantizer.format == Format::kE4M3) {
    start(DequantizeKernel<Format::kE4M3, 1>, kEach);
  } else {
    start(DequantizeKernel<Format::kE5M2, 1>, kEach);
  }
}

void TileScales(const CudaRun& run, const Tensor& scales, const Tensor& tiles) {
  const int64_t tile_cols = tiles.cols / kScaleTileCols;
  const int64_t quads = tiles.rows * tile_cols;
  Launch(run.stream, ThreadsFor(quads), TileScalesKernel, run.Data<uint8_t>(scales), scales.rows, scales.cols,
         tile_cols, quads, run.Data<uint8_t>(tiles));
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

}  // namespace ridgeline
