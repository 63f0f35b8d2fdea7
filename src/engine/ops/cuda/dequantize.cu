// dequantize. Bytes: codes, scales and y. (8192, 4096) of 8 bits to bf16: 101 MB, 23 us on an H200.
#include "engine/ops/cuda/dequantize.h"

#include "engine/device/cuda/registers.cuh"
#include "engine/ops/cuda/tiles.cuh"

namespace ridgeline::engine {
namespace {

// The blocks' scales and the tensor's; null if there are none.
struct Scales {
  const uint8_t* blocks;
  int64_t stride;
  const float* tensor;
};

// y = (code * block scale) * tensor scale.
template <Format kFormat, int kBlock, typename T>
__global__ void __launch_bounds__(kTileThreads, kBlocksAtLeast)
    Dequantize(CodeMatrix q, Scales scales, T* y, int64_t cols, int64_t stride, bool vectors) {
  const float factor = scales.tensor != nullptr ? *scales.tensor : 1.0F;
  for (int k = 0; k < kUnitsOfWarp; ++k) {
    const Place place = PlaceOf(k);
    const int64_t row = TileRow() + place.row;
    const int64_t col = TileCol() + place.col;
    if (col >= cols) continue;
    RowCodes codes;
    q.Load<kFormat>(row, col, codes);
    for (int r = 0; r < kThreadRows; ++r) {
      if (row + r >= q.rows) continue;
      float scale = 1;
      if constexpr (kBlock > 1) {
        const uint8_t code = scales.blocks[(row + r) * scales.stride + col / kBlock];
        scale = kBlock == 32 ? DecodeE8M0(code) : Decode(Format::kE4M3, code);
      }
      alignas(16) T values[kThreadCols];
      for (int c = 0; c < kThreadCols; ++c) {
        const auto code = static_cast<uint8_t>(codes[r][c / 4] >> (c % 4 * 8));
        values[c] = FromFloat<T>(__fmul_rn(__fmul_rn(Decode(kFormat, code), scale), factor));
      }
      T* to = y + (row + r) * stride + col;
      if (vectors && col + kThreadCols <= cols) {
        constexpr int kAtOnce = 16 / sizeof(T);
        for (int c = 0; c < kThreadCols; c += kAtOnce) {
          StoreVec(to + c, *reinterpret_cast<const Vec<T, kAtOnce>*>(values + c));
        }
      } else {
        for (int c = 0; c < kThreadCols; ++c) {
          if (col + c < cols) to[c] = values[c];
        }
      }
    }
  }
}

void DequantizeCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const DequantizeOperands on = call.operands(kDequantize);
  DequantizeTo(run, call.attrs(kDequantize), on.reads.q, on.writes.y);
}

}  // namespace

void DequantizeTo(const CudaRun& run, const Quantizer& quantizer, const StoredCodes& q, const Tensor& y) {
  Scales scales = {};
  if (q.scales.defined()) {
    scales.blocks = run.Data<uint8_t>(q.scales);
    scales.stride = q.scales.row_stride;
  }
  if (q.tensor_scale.defined()) scales.tensor = run.Data<float>(q.tensor_scale);
  WithQuantizedType(y, [&](auto t) {
    using T = decltype(t);
    auto kernel = Dequantize<Format::kE2M1, 16, T>;
    if (quantizer.scaling == Scaling::kBlock32) {
      kernel = Dequantize<Format::kE4M3, 32, T>;
    } else if (quantizer.format == Format::kE4M3) {
      kernel = Dequantize<Format::kE4M3, 1, T>;
    } else if (quantizer.format == Format::kE5M2) {
      kernel = Dequantize<Format::kE5M2, 1, T>;
    }
    T* to = run.Data<T>(y);
    const bool vectors =
        reinterpret_cast<uintptr_t>(to) % 16 == 0 && y.row_stride * static_cast<int64_t>(sizeof(T)) % 16 == 0;
    Launch(run.stream, TilesOf(y.rows, y.cols), kernel, CodeMatrix(run, q.codes, quantizer.format), scales, to, y.cols,
           y.row_stride, vectors);
  });
}

void AddDequantizeCuda(CudaKernelTable& table) { table[&kDequantize].run = DequantizeCuda; }

}  // namespace ridgeline::engine
