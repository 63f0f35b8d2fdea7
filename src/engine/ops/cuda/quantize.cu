// quantize to formats of 8 bits, activations and gradients that are quantized when they are made, and delayed scales.
// Bytes: x, and its codes and scales in each orientation. (8192, 4096) bf16 both ways: 134 MB, 31 us on an H200, and 16
// us more (amax.cu) if the scale depends on the whole of x.
#include "engine/ops/cuda/activation.cuh"
#include "engine/ops/cuda/add_up_parts.h"
#include "engine/ops/cuda/codes.cuh"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/fused_quantize.h"

namespace ridgeline::engine {
namespace {

// In pairs, because the instruction for two is faster than that for one.
__device__ void RoundToBf16(float (&values)[kThreadCols]) {
  for (int c = 0; c < kThreadCols; c += 2) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(values[c], values[c + 1]);
    values[c] = ToFloat(pair.x);
    values[c + 1] = ToFloat(pair.y);
  }
}

// silu(gate) * up, and gelu(x), rounded as SwiGlu and Gelu store them. Missing elements are zeros, for which both are
// 0.
struct Gated {
  Matrix<__nv_bfloat16> gates, ups;
  bool vectors = gates.vectors && ups.vectors;

  struct Words {
    Matrix<__nv_bfloat16>::Words gates, ups;
  };
  template <bool kWhole>
  __device__ void Load(int64_t row, int64_t col, Words& words) const {
    gates.Load<kWhole>(row, col, words.gates);
    ups.Load<kWhole>(row, col, words.ups);
  }
  __device__ static void ToFloats(const Words& words, float (&values)[kThreadRows][kThreadCols]) {
    float factors[kThreadRows][kThreadCols];
    Matrix<__nv_bfloat16>::ToFloats(words.gates, values);
    Matrix<__nv_bfloat16>::ToFloats(words.ups, factors);
    Unrolled<kThreadRows>([&](auto r) {
      for (int c = 0; c < kThreadCols; ++c) values[r][c] = SwiGluOf(values[r][c], factors[r][c]);
      RoundToBf16(values[r]);
    });
  }
};
struct Bent : Matrix<__nv_bfloat16> {
  __device__ static void ToFloats(const Words& words, float (&values)[kThreadRows][kThreadCols]) {
    Matrix<__nv_bfloat16>::ToFloats(words, values);
    Unrolled<kThreadRows>([&](auto r) {
      for (float& value : values[r]) value = GeluOf(value);
      RoundToBf16(values[r]);
    });
  }
};

// The least blocks per multiprocessor; 0: none. Without it, and without random bits, ptxas uses so few registers that
// an H200 holds 3 blocks for bf16, and 2 with an activation.
template <bool kWhole, bool kStochastic>
[[maybe_unused]] constexpr int kBlocksOfWhole = kWhole ? 2 * int{kStochastic} : kBlocksAtLeast;

// ptxas delays loads until their numbers are used, but not beyond a branch, such as that of tensor scales. If little is
// computed, it delays none, and a branch would make registers hold all numbers at once.
template <typename Source>
constexpr bool kIsMatrix = false;
template <typename T>
constexpr bool kIsMatrix<Matrix<T>> = true;

// With one scale for all: *delayed_scale, and *amax becomes the larger of it and x's amax; or the scale that *amax
// requires. Source: Matrix, or a type with its Words.
template <bool kWhole, Format kFormat, bool kStochastic, typename Source>
__global__ void __launch_bounds__(kPatchThreads, kBlocksOfWhole<kWhole, kStochastic>)
    QuantizeWhole(Source x, Side row, Side col, const float* delayed_scale, uint32_t* amax, RandomSource random) {
  __shared__ TurnedTile tile;
  __shared__ uint32_t scratch[kPatchThreads / kWarp];
  const float scale =
      delayed_scale != nullptr ? *delayed_scale : TensorScale(InfoOf(kFormat).max, FloatOf(*amax), 1.0F);
  const Place place = PlaceOfPatch();
  const int64_t first_row = TileRow() + place.row;
  const int64_t first_col = TileCol() + place.col;
  typename Source::Words words;
  x.template Load<kWhole>(first_row, first_col, words);
  const auto set_tensor_scales = [&] {
    SetTensorScale(row, __fdiv_rn(1.0F, scale));
    SetTensorScale(col, __fdiv_rn(1.0F, scale));
  };
  if constexpr (!kIsMatrix<Source>) set_tensor_scales();
  float values[kThreadRows][kThreadCols];
  Source::ToFloats(words, values);
  const uint32_t largest = LargestOf(values);
  const auto scaled = [&](int r, int c) { return __fmul_rn(values[r][c], scale); };
  RowCodes codes;
  EncodeRows<kFormat, kStochastic ? 16 : 0>(row, random, first_row, first_col, scaled, codes);
  if (row.codes != nullptr) StoreCodes<kFormat, kWhole>(row, first_row, first_col, codes);
  if (col.codes != nullptr) {
    RowCodes turned;
    TurnTile(codes, tile, turned);
    StoreCodes<kFormat, kWhole>(col, TileCol() + place.row, TileRow() + place.col, turned);
  }
  if constexpr (kIsMatrix<Source>) set_tensor_scales();
  if (delayed_scale != nullptr) RaiseAmax(amax, largest, scratch, kPatchThreads / kWarp);
}
template <Format kFormat, bool kStochastic, typename Source, typename... Args>
void LaunchWhole(const CudaRun& run, const Source& x, int64_t rows, int64_t cols, const Side& row, const Side& col,
                 const Args&... args) {
  auto kernel = QuantizeWhole<false, kFormat, kStochastic, Source>;
  if (WholePatches(rows, cols, x.vectors, row, col)) kernel = QuantizeWhole<true, kFormat, kStochastic, Source>;
  Launch(run.stream, TilesOf(rows, cols, kPatchThreads), kernel, x, row, col, args...);
}

// One orientation of the gradients of gates and of ups, which are two matrices to a tile.
struct GradientSides {
  Side gates, ups;
};
// A thread computes a patch of both from the same numbers. Their rounded numbers are not stored, only their codes.
template <bool kWhole>
__global__ void __launch_bounds__(kPatchThreads, kBlocksOfWhole<kWhole, true>)
    QuantizeGateBackward(Matrix<__nv_bfloat16> dy, Matrix<__nv_bfloat16> gates, Matrix<__nv_bfloat16> ups,
                         GradientSides row, GradientSides col, const float* delayed_scale, uint32_t* amax) {
  constexpr Format kFormat = Format::kE5M2;
  __shared__ TurnedTile tile;
  __shared__ uint32_t scratch[kPatchThreads / kWarp];
  const float scale = *delayed_scale;
  const Place place = PlaceOfPatch();
  const int64_t first_row = TileRow() + place.row;
  const int64_t first_col = TileCol() + place.col;
  uint32_t largest = 0;
  RowCodes codes_of_gates;
  RowCodes codes_of_ups;
  Unrolled<kThreadRows>([&](auto r) {
    float d[kThreadCols];
    float gate[kThreadCols];
    float up[kThreadCols];
    dy.LoadRow<kWhole>(first_row, first_col, r, d);
    gates.LoadRow<kWhole>(first_row, first_col, r, gate);
    ups.LoadRow<kWhole>(first_row, first_col, r, up);
    for (int c = 0; c < kThreadCols; ++c) SwiGluGradient(d[c], gate[c], up[c], gate[c], up[c]);
    const auto encode = [&](float(&values)[kThreadCols], RowCodes& codes) {
      RoundToBf16(values);
      for (const float value : values) largest = max(largest, Magnitude(value));
      Unrolled<kThreadCols / 4>([&](auto word) {
        codes[r][word] = NearestCodes<kFormat>([&](int i) { return __fmul_rn(values[4 * word + i], scale); });
      });
    };
    encode(gate, codes_of_gates);
    encode(up, codes_of_ups);
  });
  StoreCodes<kFormat, kWhole>(row.gates, first_row, first_col, codes_of_gates);
  StoreCodes<kFormat, kWhole>(row.ups, first_row, first_col, codes_of_ups);
  const auto store_columns = [&](const Side& side, const RowCodes& codes) {
    RowCodes turned;
    TurnTile(codes, tile, turned);
    StoreCodes<kFormat, kWhole>(side, TileCol() + place.row, TileRow() + place.col, turned);
  };
  store_columns(col.gates, codes_of_gates);
  __syncthreads();  // all have read the tile
  store_columns(col.ups, codes_of_ups);
  SetTensorScale(row.gates, __fdiv_rn(1.0F, scale));
  SetTensorScale(col.gates, __fdiv_rn(1.0F, scale));
  RaiseAmax(amax, largest, scratch, kPatchThreads / kWarp);
}

// Sums of a tile's columns, for the gradient of a bias. A thread has those of its patch's rows. Lanes with the same
// columns, at distances of kApart, add theirs. Each of the block's kDown warps that lie below one another leaves a row.
template <int kApart, int kDown>
__device__ __forceinline__ void SumColumns(float (&sums)[kThreadCols], int down, int col,
                                           float (&of_warps)[kDown][kTile]) {
  for (int lanes = kApart; lanes < kWarp; lanes *= 2) {
    for (float& sum : sums) sum += __shfl_xor_sync(kAllLanes, sum, lanes);
  }
  if (static_cast<int>(threadIdx.x) % kWarp >= kApart) return;
  for (int c = 0; c < kThreadCols; ++c) of_warps[down][col + c] = sums[c];
}
// Stores the tile's sums as a part of those of `cols` columns, after the whole block has left its rows.
template <int kDown>
__device__ __forceinline__ void StoreColumnSums(const float (&of_warps)[kDown][kTile], float* parts, int64_t stride,
                                                int64_t cols) {
  const int64_t col = TileCol() + threadIdx.x;
  if (threadIdx.x >= kTile || col >= cols) return;
  float sum = 0;
  for (const auto& of_warp : of_warps) sum += of_warp[threadIdx.x];
  parts[blockIdx.y * stride + col] = sum;
}

static_assert(kTile == kQuantizeTileRows);
struct BiasParts {
  float* parts;  // a row of `stride` for each tile down; null: no bias
  int64_t stride;
};

// The gradient of GELU's input, rounded as GeluBackward stores it. Missing elements are zeros, for which it is 0.
template <bool kWhole>
struct BentGradient {
  const Matrix<__nv_bfloat16>&dy, &x;

  __device__ __forceinline__ void LoadRow(int64_t row, int64_t col, int r, float (&values)[kThreadCols]) const {
    float d[kThreadCols];
    dy.LoadRow<kWhole>(row, col, r, d);
    x.LoadRow<kWhole>(row, col, r, values);
    for (int c = 0; c < kThreadCols; ++c) values[c] = GeluGradient(d[c], values[c]);
    RoundToBf16(values);
  }
};
// Whole matrices have numbers of another patch in place of a missing one's.
template <bool kWhole>
__device__ bool Counts(const Matrix<__nv_bfloat16>& x, int64_t row) {
  return !kWhole || row < x.rows;
}

template <bool kWhole>
__global__ void __launch_bounds__(kPatchThreads, kBlocksOfWhole<kWhole, true>)
    QuantizeBentBackward(Matrix<__nv_bfloat16> dy, Matrix<__nv_bfloat16> x, Side row, Side col,
                         const float* delayed_scale, uint32_t* amax, BiasParts bias) {
  constexpr Format kFormat = Format::kE5M2;
  __shared__ TurnedTile tile;
  __shared__ float column_sums[kPatchThreads / kWarp][kTile];
  __shared__ uint32_t scratch[kPatchThreads / kWarp];
  const float scale = *delayed_scale;
  const Place place = PlaceOfPatch();
  const int64_t first_row = TileRow() + place.row;
  const int64_t first_col = TileCol() + place.col;
  uint32_t largest = 0;
  float sums[kThreadCols] = {};
  RowCodes codes;
  Unrolled<kThreadRows>([&](auto r) {
    float values[kThreadCols];
    BentGradient<kWhole>{dy, x}.LoadRow(first_row, first_col, r, values);
    for (const float value : values) largest = max(largest, Magnitude(value));
    for (int c = 0; c < kThreadCols; ++c) sums[c] += values[c];
    Unrolled<kThreadCols / 4>([&](auto word) {
      codes[r][word] = NearestCodes<kFormat>([&](int i) { return __fmul_rn(values[4 * word + i], scale); });
    });
  });
  if (!Counts<kWhole>(x, first_row)) {
    for (float& sum : sums) sum = 0;
  }
  SumColumns<kRowPatches>(sums, static_cast<int>(threadIdx.x) / kWarp, place.col, column_sums);
  StoreCodes<kFormat, kWhole>(row, first_row, first_col, codes);
  RowCodes turned;
  TurnTile(codes, tile, turned);  // with a barrier
  StoreCodes<kFormat, kWhole>(col, TileCol() + place.row, TileRow() + place.col, turned);
  if (bias.parts != nullptr) StoreColumnSums(column_sums, bias.parts, bias.stride, x.cols);
  SetTensorScale(row, __fdiv_rn(1.0F, scale));
  SetTensorScale(col, __fdiv_rn(1.0F, scale));
  RaiseAmax(amax, largest, scratch, kPatchThreads / kWarp);
}

struct MxScale {
  uint8_t code;
  float factor;  // elements are multiplied by it
};
__device__ MxScale MxScaleOf(uint32_t amax, ScaleRule rule) {
  constexpr FormatInfo kInfo = InfoOf(Format::kE4M3);
  const float largest = rule == ScaleRule::kRoundUp ? kInfo.max : static_cast<float>(1 << kInfo.max_exponent);
  const uint8_t code = EncodeE8M0(__fdiv_rn(FloatOf(amax), largest), rule);
  return {code, DecodeE8M0(code == 255 ? code : static_cast<uint8_t>(254 - code))};
}

// With one E8M0 scale per 32 elements: a unit's row, or its column. The scales are those of a tile's rows and columns.
using MxScales = ScaleRow<kTile / kUnit>[kTile];
template <int kBits, typename Source>
__device__ __forceinline__ void MxTile(const Source& x, const Side& row, const Side& col, const RandomSource& random,
                                       MxScales& row_scales, MxScales& col_scales) {
  ForUnits(x, [&](const Place& place, int64_t first_row, int64_t first_col, auto& values) {
    if (row.codes != nullptr) {
      uint32_t amaxes[kThreadRows] = {};
      for (int r = 0; r < kThreadRows; ++r) {
        for (const float value : values[r]) amaxes[r] = max(amaxes[r], Magnitude(value));
      }
      ShareLargest<kChunks, 1>(amaxes);
      const MxScale own = MxScaleOf(amaxes[0], row.scale_rule);
      row_scales[place.row + NumberOfLane<kChunks, 1>()].of[place.col / kUnit] = own.code;
      float factors[kThreadRows];
      for (int r = 0; r < kThreadRows; ++r) factors[r] = FromLane<kChunks, 1>(r, own.factor);
      RowCodes codes;
      const auto scaled = [&](int r, int c) { return __fmul_rn(values[r][c], factors[r]); };
      EncodeRows<Format::kE4M3, kBits>(row, random, first_row, first_col, scaled, codes);
      StoreCodes<Format::kE4M3>(row, first_row, first_col, codes);
    }
    if (col.codes != nullptr) {
      uint32_t amaxes[kThreadCols] = {};
      for (const auto& of_row : values) {
        for (int c = 0; c < kThreadCols; ++c) amaxes[c] = max(amaxes[c], Magnitude(of_row[c]));
      }
      ShareLargest<kQuads, kChunks>(amaxes);
      const MxScale own = MxScaleOf(amaxes[0], col.scale_rule);
      col_scales[place.col + NumberOfLane<kQuads, kChunks>()].of[place.row / kUnit] = own.code;
      float factors[kThreadCols];
      for (int c = 0; c < kThreadCols; ++c) factors[c] = FromLane<kQuads, kChunks>(c, own.factor);
      ColumnCodes codes;
      const auto scaled = [&](int r, int c) { return __fmul_rn(values[r][c], factors[c]); };
      EncodeColumns<Format::kE4M3, kBits>(col, random, first_row, first_col, scaled, codes);
      StoreCodes<Format::kE4M3>(col, first_col, first_row, codes);
    }
  });
  static_assert(kChunks == kThreadRows && kQuads == kThreadCols);
  StoreScales(row, col, row_scales, col_scales);
}
template <bool kStochastic, typename T>
__global__ void __launch_bounds__(kTileThreads, kStochastic ? 2 : 3)
    QuantizeMx(Matrix<T> x, Side row, Side col, RandomSource random) {
  __shared__ MxScales row_scales;
  __shared__ MxScales col_scales;
  MxTile<kStochastic ? 16 : 0>(x, row, col, random, row_scales, col_scales);
}

// The gradient of gates, or of ups, rounded as SwiGluBackward stores it. Missing elements are zeros, for which both are
// 0. kWhole: each block of 32 rows is whole or missing. What is computed for a missing one is not stored.
template <bool kOfUps, bool kWhole>
struct GateGradient {
  const Matrix<__nv_bfloat16>&dy, &gates, &ups;

  __device__ void Load(int64_t row, int64_t col, float (&values)[kThreadRows][kThreadCols]) const {
    Unrolled<kThreadRows>([&](auto r) {
      float d[kThreadCols];
      float gate[kThreadCols];
      float up[kThreadCols];
      dy.LoadRow<kWhole>(row, col, r, d);
      gates.LoadRow<kWhole>(row, col, r, gate);
      ups.LoadRow<kWhole>(row, col, r, up);
      for (int c = 0; c < kThreadCols; ++c) SwiGluGradient(d[c], gate[c], up[c], gate[c], up[c]);
      for (int c = 0; c < kThreadCols; ++c) values[r][c] = kOfUps ? up[c] : gate[c];
      RoundToBf16(values[r]);
    });
  }
};
// A block makes its tile of both, one after the other. The second time, it reads the same numbers from a cache.
template <bool kWhole>
__global__ void __launch_bounds__(kTileThreads, kBlocksOfWhole<kWhole, true>)
    QuantizeMxGateBackward(Matrix<__nv_bfloat16> dy, Matrix<__nv_bfloat16> gates, Matrix<__nv_bfloat16> ups,
                           GradientSides row, GradientSides col) {
  __shared__ MxScales row_scales;
  __shared__ MxScales col_scales;
  MxTile<0>(GateGradient<false, kWhole>{dy, gates, ups}, row.gates, col.gates, {}, row_scales, col_scales);
  __syncthreads();  // all have stored the scales
  MxTile<0>(GateGradient<true, kWhole>{dy, gates, ups}, row.ups, col.ups, {}, row_scales, col_scales);
}

constexpr int kUnitsDown = kTile / kUnit;
// A unit's numbers, and the sums of its columns.
template <bool kWhole>
struct SummedBentGradient {
  const Matrix<__nv_bfloat16>&dy, &x;
  float (&column_sums)[kUnitsDown][kTile];

  __device__ void Load(int64_t row, int64_t col, float (&values)[kThreadRows][kThreadCols]) const {
    float sums[kThreadCols] = {};
    Unrolled<kThreadRows>([&](auto r) {
      BentGradient<kWhole>{dy, x}.LoadRow(row, col, r, values[r]);
      for (int c = 0; c < kThreadCols; ++c) sums[c] += values[r][c];
    });
    if (!Counts<kWhole>(x, row)) {
      for (float& sum : sums) sum = 0;
    }
    SumColumns<kChunks>(sums, static_cast<int>((row - TileRow()) / kUnit), static_cast<int>(col - TileCol()),
                        column_sums);
  }
};
template <bool kWhole>
__global__ void __launch_bounds__(kTileThreads, kBlocksOfWhole<kWhole, true>)
    QuantizeMxBentBackward(Matrix<__nv_bfloat16> dy, Matrix<__nv_bfloat16> x, Side row, Side col, BiasParts bias) {
  __shared__ MxScales row_scales;
  __shared__ MxScales col_scales;
  __shared__ float column_sums[kUnitsDown][kTile];
  MxTile<0>(SummedBentGradient<kWhole>{dy, x, column_sums}, row, col, {}, row_scales, col_scales);  // with a barrier
  if (bias.parts != nullptr) StoreColumnSums(column_sums, bias.parts, bias.stride, x.cols);
}

void QuantizeCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const QuantizeAttrs& attrs = call.attrs(kQuantize);
  const QuantizeOperands on = call.operands(kQuantize);
  const Quantizer& any = on.writes.row.codes.defined() ? attrs.row : attrs.col;
  if (any.format == Format::kE2M1) return QuantizeNvCuda(call, run);
  const Tensor& x = on.reads.x;
  const Side row = SideOf(run, on.writes.row, attrs.row, x.cols, kThreadCols);
  const bool blocks = any.scaling == Scaling::kBlock32;
  const Side col = SideOf(run, on.writes.col, attrs.col, x.rows, blocks ? kThreadRows : kThreadCols);
  const RandomSource random = {run.Inputs(on.reads.inputs), attrs.stream};
  const bool stochastic = row.stochastic || col.stochastic;
  WithQuantizedType(x, [&](auto t) {
    using T = decltype(t);
    const Matrix<T> from(run, x);
    if (blocks) {
      const auto kernel = stochastic ? QuantizeMx<true, T> : QuantizeMx<false, T>;
      Launch(run.stream, TilesOf(x.rows, x.cols), kernel, from, row, col, random);
      return;
    }
    const float* delayed_scale = nullptr;
    uint32_t* amax;
    if (any.scaling == Scaling::kDelayed) {
      delayed_scale = run.Data<float>(on.reads.delayed_scale);
      amax = run.Data<uint32_t>(on.writes.delayed_amax);
    } else {
      amax = AmaxesOf(x, on.scratch.amaxes, true, false, run);
    }
    const auto launch = [&]<Format kFormat, bool kStochastic>() {
      LaunchWhole<kFormat, kStochastic>(run, from, x.rows, x.cols, row, col, delayed_scale, amax, random);
    };
    if (any.format == Format::kE5M2) return launch.template operator()<Format::kE5M2, false>();
    if (stochastic) return launch.template operator()<Format::kE4M3, true>();
    launch.template operator()<Format::kE4M3, false>();
  });
}

template <typename Source>
void QuantizeSource(const Op<ActivationQuantizeOperands>& op, const OpCall& call, const CudaRun& run, const Source& x,
                    int64_t rows, int64_t cols) {
  const ActivationQuantizeOperands on = call.operands(op);
  LaunchWhole<Format::kE4M3, false>(run, x, rows, cols, SideOf(run, on.writes.row, kFusedQuantizer, cols, kThreadCols),
                                    SideOf(run, on.writes.col, kFusedQuantizer, rows, kThreadCols),
                                    run.Data<float>(on.reads.delayed_scale), run.Data<uint32_t>(on.writes.delayed_amax),
                                    RandomSource{});
}
// gate_up is read once, and codes are written once. (8192, 14336) both ways: 705 MB, 164 us.
void SwiGluQuantizeCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const Tensor x = call.operands(kSwiGluQuantize).reads.x;
  const int64_t ffn = x.cols / 2;
  const Gated gated = {{run, x.Cols(0, ffn)}, {run, x.Cols(ffn, ffn)}};
  QuantizeSource(kSwiGluQuantize, call, run, gated, x.rows, ffn);
}
void GeluQuantizeCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const Tensor x = call.operands(kGeluQuantize).reads.x;
  QuantizeSource(kGeluQuantize, call, run, Bent{{run, x}}, x.rows, x.cols);
}

// dy and gate_up are read once, and codes are written once. (8192, 14336): 1.17 GB, 273 us. Without it, the gradient is
// written as bf16 and read again: 0.94 GB more.
void SwiGluBackwardQuantizeCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kSwiGluBackwardQuantize);
  const Tensor& dy = on.reads.dy;
  const int64_t ffn = dy.cols;
  const auto side_of = [&](const Tensor& codes, const Tensor& tensor_scale, int64_t inner) {
    return SideOf(run, {codes, {}, tensor_scale}, kFusedGradientQuantizer, inner, kThreadCols);
  };
  const auto& [row, col, amax] = on.writes;
  const GradientSides rows = {side_of(row.codes.Cols(0, ffn), row.tensor_scale, 2 * ffn),
                              side_of(row.codes.Cols(ffn, ffn), {}, 2 * ffn)};
  const GradientSides cols = {side_of(col.codes.Rows(0, ffn), col.tensor_scale, dy.rows),
                              side_of(col.codes.Rows(ffn, ffn), {}, dy.rows)};
  const Matrix<__nv_bfloat16> gradients(run, dy);
  const Matrix<__nv_bfloat16> gates(run, on.reads.gate_up.Cols(0, ffn));
  const Matrix<__nv_bfloat16> ups(run, on.reads.gate_up.Cols(ffn, ffn));
  const bool vectors = gradients.vectors && gates.vectors && ups.vectors && rows.ups.vectors && cols.ups.vectors;
  const bool whole = WholePatches(dy.rows, ffn, vectors, rows.gates, cols.gates);
  Launch(run.stream, TilesOf(dy.rows, ffn, kPatchThreads),
         whole ? QuantizeGateBackward<true> : QuantizeGateBackward<false>, gradients, gates, ups, rows, cols,
         run.Data<float>(on.reads.delayed_scale), run.Data<uint32_t>(amax));
}

// The same bytes, and those of the scales.
void SwiGluBackwardQuantizeMxCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kSwiGluBackwardQuantizeMx);
  const Tensor& dy = on.reads.dy;
  const Tensor& gate_up = on.reads.gate_up;
  const int64_t ffn = dy.cols;
  const int64_t blocks = ffn / kUnit;
  const Quantizer quantizer = MxGradientQuantizer(call.attrs(kSwiGluBackwardQuantizeMx));
  const auto rows_of = [&](int64_t half) {
    const StoredCodes codes = {
        on.writes.row.codes.Cols(half * ffn, ffn), on.writes.row.scales.Cols(half * blocks, blocks), {}};
    return SideOf(run, codes, quantizer, 2 * ffn, kThreadCols);
  };
  const auto columns_of = [&](int64_t half) {
    const StoredCodes codes = {
        on.writes.col.codes.Rows(half * ffn, ffn), on.writes.col.scales.Rows(half * ffn, ffn), {}};
    return SideOf(run, codes, quantizer, dy.rows, kThreadRows);
  };
  const Matrix<__nv_bfloat16> gradients(run, dy);
  const Matrix<__nv_bfloat16> gates(run, gate_up.Cols(0, ffn));
  const Matrix<__nv_bfloat16> ups(run, gate_up.Cols(ffn, ffn));
  const bool whole = dy.rows % kUnit == 0 && gradients.vectors && gates.vectors && ups.vectors;
  Launch(run.stream, TilesOf(dy.rows, ffn), whole ? QuantizeMxGateBackward<true> : QuantizeMxGateBackward<false>,
         gradients, gates, ups, GradientSides{rows_of(0), rows_of(1)}, GradientSides{columns_of(0), columns_of(1)});
}

// dy and x are read once, and codes are written once. (8192, 16384): 805 MB, 187 us. The parts are 4 MB. Without it,
// the gradient is written as bf16 and read twice: 0.81 GB more.
void GeluBackwardQuantizeCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kGeluBackwardQuantize);
  const GeluBackwardQuantizeAttrs& attrs = call.attrs(kGeluBackwardQuantize);
  const bool blocks = HasBlocks(attrs.quantizer.scaling);
  const Matrix<__nv_bfloat16> gradients(run, on.reads.dy);
  const Matrix<__nv_bfloat16> x(run, on.reads.x);
  const Side row = SideOf(run, on.writes.row, attrs.quantizer, x.cols, kThreadCols);
  const Side col = SideOf(run, on.writes.col, attrs.quantizer, x.rows, blocks ? kThreadRows : kThreadCols);
  const Tensor& parts = on.scratch.parts;
  BiasParts bias = {};
  if (parts.defined()) bias = {run.Data<float>(parts), parts.cols};
  const bool vectors = gradients.vectors && x.vectors;
  if (blocks) {
    const bool whole = x.rows % kUnit == 0 && x.cols % kUnit == 0 && vectors;
    Launch(run.stream, TilesOf(x.rows, x.cols), whole ? QuantizeMxBentBackward<true> : QuantizeMxBentBackward<false>,
           gradients, x, row, col, bias);
  } else {
    const bool whole = WholePatches(x.rows, x.cols, vectors, row, col);
    Launch(run.stream, TilesOf(x.rows, x.cols, kPatchThreads),
           whole ? QuantizeBentBackward<true> : QuantizeBentBackward<false>, gradients, x, row, col,
           run.Data<float>(on.reads.delayed_scale), run.Data<uint32_t>(on.writes.delayed_amax), bias);
  }
  if (parts.defined()) AddUpParts(run, bias.parts, parts.rows, parts.cols, on.writes.dbias, attrs.accumulate);
}

constexpr int kSlotThreads = 256;

// One warp per slot.
__global__ void __launch_bounds__(kSlotThreads)
    UpdateDelayedScales(float* history, int64_t slots, int64_t length, int64_t stride, float* scales, float* amaxes,
                        float format_max) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t slot = (int64_t{blockIdx.x} * kSlotThreads + threadIdx.x) / kWarp;
  if (slot >= slots) return;
  float* first = history + slot * stride;
  const float newest = amaxes[slot];
  uint32_t largest = 0;
  for (int64_t at = lane; at - lane < length; at += kWarp) {
    float value = 0;
    if (at < length) value = at + 1 < length ? first[at + 1] : newest;
    __syncwarp();  // a neighbour has read the memory that is written now
    if (at < length) first[at] = value;
    if (!(value <= 0)) largest = max(largest, Magnitude(value));
  }
  largest = __reduce_max_sync(kAllLanes, largest);
  if (lane != 0) return;
  scales[slot] = TensorScale(format_max, FloatOf(largest), scales[slot]);
  amaxes[slot] = 0;
}

void UpdateDelayedScalesCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const UpdateDelayedScalesOperands on = call.operands(kUpdateDelayedScales);
  const Tensor& history = on.writes.history;
  Launch(run.stream, {dim3(BlocksFor(history.rows * kWarp, kSlotThreads)), dim3(kSlotThreads)}, UpdateDelayedScales,
         run.Data<float>(history), history.rows, history.cols, history.row_stride, run.Data<float>(on.writes.scale),
         run.Data<float>(on.writes.amax), InfoOf(call.attrs(kUpdateDelayedScales)).max);
}

}  // namespace

void AddQuantizeCuda(CudaKernelTable& table) {
  table[&kQuantize].run = QuantizeCuda;
  table[&kSwiGluQuantize].run = SwiGluQuantizeCuda;
  table[&kGeluQuantize].run = GeluQuantizeCuda;
  table[&kSwiGluBackwardQuantize].run = SwiGluBackwardQuantizeCuda;
  table[&kSwiGluBackwardQuantizeMx].run = SwiGluBackwardQuantizeMxCuda;
  table[&kGeluBackwardQuantize].run = GeluBackwardQuantizeCuda;
  table[&kUpdateDelayedScales].run = UpdateDelayedScalesCuda;
  AddDequantizeCuda(table);
  AddTransposeQuantizedCuda(table);
}

}  // namespace ridgeline::engine
