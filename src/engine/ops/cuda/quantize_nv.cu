// quantize to nvfp4. Bytes: x twice, because scales depend on its amax (amax.cu), and codes and scales in each
// orientation. (8192, 4096) bf16 both ways: 172 MB, 40 us on an H200.
#include "engine/ops/cuda/codes.cuh"
#include "engine/ops/cuda/hadamard.cuh"

namespace ridgeline::engine {
namespace {

constexpr int kNvSize = 16;
constexpr int kNvChunks = kNvSize / kThreadCols;  // lanes that share a row's block
constexpr int kNvQuads = kNvSize / kThreadRows;   // lanes that share a column's block
using NvScaleRow = ScaleRow<kTile / kNvSize>;

struct NvScale {
  uint8_t code;
  float divisor;
  float inverse;  // in usual blocks; 0 in others
};

// Scales the blocks of a tensor with this amax. (ops/cpu/codes_nv-inl.h has the CPU's version, and explains why
// quotients formed with inverses equal those of divisions.)
class Nv {
 public:
  __device__ explicit Nv(uint32_t amax) {
    encode_scale_ = TensorScale(kNvfp4Max, FloatOf(amax), 1.0F);
    tensor_scale_ = __fdiv_rn(1.0F, encode_scale_);
    // Ensures that nothing becomes subnormal or infinite on the way to a quotient.
    const bool usual = tensor_scale_ > 0x1p-80F && tensor_scale_ < 0x1p100F;
    least_usual_ = usual ? 0x1p-6F : FloatOf(kInfinityBits);
  }
  __device__ float tensor_scale() const { return tensor_scale_; }

  __device__ NvScale Scale(uint32_t amax) const {
    constexpr float kLargest = InfoOf(Format::kE2M1).max;
    const float scale = __fdiv_rn(__fmul_rn(FloatOf(amax), encode_scale_), kLargest);
    const uint8_t code = Encode(Format::kE4M3, scale);
    const float divisor = __fmul_rn(Decode(Format::kE4M3, code), tensor_scale_);
    if (divisor == 0) return {code, FloatOf(kInfinityBits), 0.0F};
    const bool usual = scale >= least_usual_ && scale < InfoOf(Format::kE4M3).max + 1;
    return {code, divisor, usual ? __fdiv_rn(1.0F, divisor) : 0.0F};
  }

 private:
  float encode_scale_;
  float tensor_scale_;
  float least_usual_;  // for a block's scale before it is rounded
};

__device__ float Quotient(float x, float divisor, float inverse) {
  if (inverse == 0) return __fdiv_rn(x, divisor);
  const float near = __fmul_rn(x, inverse);
  const float excess = __fmaf_rn(near, divisor, -x);
  return __fmaf_rn(-excess, inverse, near);
}

// Scales kCount blocks, of whose largest magnitudes kLanes lanes have parts. Each lane scales its share of them, stores
// the codes with store(block, code), and passes the scales to the others.
template <int kLanes, int kStride, int kCount, typename Store>
__device__ __forceinline__ void ShareScales(const Nv& nv, uint32_t (&largest)[kCount], float (&divisors)[kCount],
                                            float (&inverses)[kCount], const Store& store) {
  ShareLargest<kLanes, kStride>(largest);
  constexpr int kOwn = kCount / kLanes;
  const int first = NumberOfLane<kLanes, kStride>() * kOwn;
  for (int i = 0; i < kOwn; ++i) {
    const NvScale own = nv.Scale(largest[i]);
    store(first + i, own.code);
    for (int from = 0; from < kLanes; ++from) {
      divisors[from * kOwn + i] = FromLane<kLanes, kStride>(from, own.divisor);
      inverses[from * kOwn + i] = FromLane<kLanes, kStride>(from, own.inverse);
    }
  }
}

// With one E4M3 scale per 16 elements. amaxes: of x unchanged, and transformed.
template <bool kHadamard, bool kStochastic, typename T>
__global__ void __launch_bounds__(kTileThreads, kBlocksAtLeast)
    QuantizeNv(Matrix<T> x, Side row, Side col, const uint32_t* amaxes, RandomSource random) {
  constexpr int kBits = kStochastic ? 9 : 0;
  __shared__ NvScaleRow row_scales[kTile];
  __shared__ NvScaleRow col_scales[kTile];
  const Nv by_row(amaxes[0]);
  const Nv by_col(amaxes[kHadamard ? 1 : 0]);
  SetTensorScale(row, by_row.tensor_scale());
  SetTensorScale(col, by_col.tensor_scale());
  ForUnits(x, [&](const Place& place, int64_t first_row, int64_t first_col, auto& values) {
    if (row.codes != nullptr) {
      uint32_t largest[kThreadRows] = {};
      for (int r = 0; r < kThreadRows; ++r) {
        for (const float value : values[r]) largest[r] = max(largest[r], Magnitude(value));
      }
      float divisors[kThreadRows];
      float inverses[kThreadRows];
      ShareScales<kNvChunks, 1>(by_row, largest, divisors, inverses,
                                [&](int r, uint8_t code) { row_scales[place.row + r].of[place.col / kNvSize] = code; });
      RowCodes codes;
      const auto scaled = [&](int r, int c) { return Quotient(values[r][c], divisors[r], inverses[r]); };
      EncodeRows<Format::kE2M1, kBits>(row, random, first_row, first_col, scaled, codes);
      StoreCodes<Format::kE2M1>(row, first_row, first_col, codes);
    }
    if (col.codes != nullptr) {
      if constexpr (kHadamard) Transform(values);
      uint32_t largest[kThreadCols] = {};
      for (const auto& of_row : values) {
        for (int c = 0; c < kThreadCols; ++c) largest[c] = max(largest[c], Magnitude(of_row[c]));
      }
      float divisors[kThreadCols];
      float inverses[kThreadCols];
      ShareScales<kNvQuads, kChunks>(by_col, largest, divisors, inverses, [&](int c, uint8_t code) {
        col_scales[place.col + c].of[place.row / kNvSize] = code;
      });
      ColumnCodes codes;
      const auto scaled = [&](int r, int c) { return Quotient(values[r][c], divisors[c], inverses[c]); };
      EncodeColumns<Format::kE2M1, kBits>(col, random, first_row, first_col, scaled, codes);
      StoreCodes<Format::kE2M1>(col, first_col, first_row, codes);
    }
  });
  StoreScales(row, col, row_scales, col_scales);
}

// With one E4M3 scale per 16 by 16 elements: the codes of the rows are those of the columns.
template <bool kStochastic, typename T>
__global__ void __launch_bounds__(kTileThreads, kBlocksAtLeast)
    QuantizeSquares(Matrix<T> x, Side row, Side col, const uint32_t* amaxes, RandomSource random) {
  __shared__ NvScaleRow row_scales[kTile];
  __shared__ NvScaleRow col_scales[kTile];
  const Nv nv(amaxes[0]);
  SetTensorScale(row, nv.tensor_scale());
  SetTensorScale(col, nv.tensor_scale());
  ForUnits(x, [&](const Place& place, int64_t first_row, int64_t first_col, auto& values) {
    uint32_t largest = 0;
    for (const auto& of_row : values) {
      for (const float value : of_row) largest = max(largest, Magnitude(value));
    }
    largest = max(largest, __shfl_xor_sync(kAllLanes, largest, 1));
    largest = max(largest, __shfl_xor_sync(kAllLanes, largest, kChunks));
    largest = max(largest, __shfl_xor_sync(kAllLanes, largest, 2 * kChunks));
    static_assert(kNvChunks == 2 && kNvQuads == 4);
    const NvScale scale = nv.Scale(largest);
    if (NumberOfLane<kNvChunks, 1>() == 0) {
      for (int r = 0; r < kThreadRows; ++r) row_scales[place.row + r].of[place.col / kNvSize] = scale.code;
    }
    if (NumberOfLane<kNvQuads, kChunks>() == 0) {
      for (int c = 0; c < kThreadCols; ++c) col_scales[place.col + c].of[place.row / kNvSize] = scale.code;
    }
    RowCodes codes;
    const auto scaled = [&](int r, int c) { return Quotient(values[r][c], scale.divisor, scale.inverse); };
    EncodeRows<Format::kE2M1, kStochastic ? 16 : 0>(row, random, first_row, first_col, scaled, codes);
    if (row.codes != nullptr) StoreCodes<Format::kE2M1>(row, first_row, first_col, codes);
    if (col.codes != nullptr) {
      ColumnCodes turned;
      TurnCodes(codes, turned);
      StoreCodes<Format::kE2M1>(col, first_col, first_row, turned);
    }
  });
  StoreScales(row, col, row_scales, col_scales);
}

}  // namespace

void QuantizeNvCuda(const OpCall& call, const CudaRun& run) {
  const QuantizeAttrs& attrs = call.attrs(kQuantize);
  const QuantizeOperands on = call.operands(kQuantize);
  const Tensor& x = on.reads.x;
  const Side row = SideOf(run, on.writes.row, attrs.row, x.cols, kThreadCols);
  const Side col = SideOf(run, on.writes.col, attrs.col, x.rows, kThreadRows);
  const Quantizer& any = row.codes != nullptr ? attrs.row : attrs.col;
  const bool hadamard = col.codes != nullptr && attrs.col.hadamard;
  const bool stochastic = row.stochastic || col.stochastic;
  const RandomSource random = {run.Inputs(on.reads.inputs), attrs.stream};
  const uint32_t* amaxes = AmaxesOf(x, on.scratch.amaxes, row.codes != nullptr || !hadamard, hadamard, run);
  const LaunchShape shape = TilesOf(x.rows, x.cols);
  WithQuantizedType(x, [&](auto t) {
    using T = decltype(t);
    auto kernel = stochastic ? QuantizeNv<false, true, T> : QuantizeNv<false, false, T>;
    if (any.scaling == Scaling::kBlock16x16) {
      kernel = stochastic ? QuantizeSquares<true, T> : QuantizeSquares<false, T>;
    }
    if constexpr (sizeof(T) == 2) {
      if (hadamard) kernel = stochastic ? QuantizeNv<true, true, T> : QuantizeNv<true, false, T>;
    }
    Launch(run.stream, shape, kernel, Matrix<T>(run, x), row, col, amaxes, random);
  });
}

}  // namespace ridgeline::engine
