// What the kernels of 8- and 4-bit codes share: how a matrix is divided, loaded and stored, in both orientations.
//
// A block of threads takes a tile of 128 by 128 elements, a warp units of 32 by 32 of it, of which each thread has 4
// rows of 8 columns. So what shares a scale or is transformed together lies within a warp, in either orientation, and
// codes need no shared memory: a row's are stored 8 at a time, a column's 4, and a unit's whole sectors of either (half
// ones of 4-bit codes).
#pragma once

#include <cuda_fp8.h>

#include <cstdint>

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/kernel.h"
#include "engine/device/cuda/launch.h"
#include "engine/ops/philox.h"
#include "engine/ops/quantize.h"

namespace ridgeline {

constexpr int kTile = 128;
constexpr int kUnit = 32;
constexpr int kTileThreads = 256;  // 8 warps, 4 down and 2 across, that take two units each
constexpr int kThreadRows = 4;
constexpr int kThreadCols = 8;
constexpr int kChunks = kUnit / kThreadCols;  // lanes of a unit's row: neighbours
constexpr int kQuads = kUnit / kThreadRows;   // lanes of a unit's column: kChunks apart

// CUDA allows 65535 tiles down: 8 million rows.
inline LaunchShape TilesOf(int64_t rows, int64_t cols) {
  return {dim3(BlocksFor(cols, kTile), BlocksFor(rows, kTile)), dim3(kTileThreads)};
}

// Where a thread's rows and columns begin in its tile, for its k-th unit.
struct Place {
  int row, col;
};
constexpr int kUnitsOfWarp = 2;
__device__ inline Place PlaceOf(int k) {
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarp;
  return {warp % 4 * kUnit + thread / kChunks % kQuads * kThreadRows,
          (warp / 4 + 2 * k) * kUnit + thread % kChunks * kThreadCols};
}
__device__ inline int64_t TileRow() { return int64_t{blockIdx.y} * kTile; }
__device__ inline int64_t TileCol() { return int64_t{blockIdx.x} * kTile; }

// A matrix that is read. What is not there is zeros.
template <typename T>
struct Matrix {
  const T* data;
  int64_t rows, cols, stride;
  bool vectors;  // whether 8 elements from a multiple of 8 on may be loaded by 16 bytes

  Matrix(const CudaRun& run, const Tensor& x)
      : data(run.Data<T>(x)),
        rows(x.rows),
        cols(x.cols),
        stride(x.row_stride),
        vectors(reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride * static_cast<int64_t>(sizeof(T)) % 16 == 0) {}

  __device__ void Load(int64_t row, int64_t col, float (&values)[kThreadRows][kThreadCols]) const {
    constexpr int kAtOnce = 16 / sizeof(T);
    const bool whole = vectors && col + kThreadCols <= cols;
    for (int r = 0; r < kThreadRows; ++r) {
      const T* from = data + (row + r) * stride + col;
      const bool there = row + r < rows;
      if (there && whole) {
        for (int c = 0; c < kThreadCols; c += kAtOnce) {
          const auto vec = LoadVec<T, kAtOnce>(from + c);
          for (int i = 0; i < kAtOnce; ++i) values[r][c + i] = ToFloat(vec.of[i]);
        }
      } else {
        for (int c = 0; c < kThreadCols; ++c) values[r][c] = there && col + c < cols ? ToFloat(from[c]) : 0.0F;
      }
    }
  }
};

// One orientation of a quantized matrix.
struct Side {
  uint8_t* codes = nullptr;  // not wanted
  int64_t outer = 0;
  int64_t bytes = 0;  // of a row's codes
  int64_t stride = 0;
  bool vectors = false;  // whether a thread's codes of a row may be stored at once
  uint8_t* scales = nullptr;
  int64_t scale_cols = 0;
  int64_t scale_stride = 0;
  float* tensor_scale = nullptr;
  int64_t draw_cols = 0;  // random numbers of a row
  bool stochastic = false;
  ScaleRule scale_rule = ScaleRule::kRoundUp;
};
// `codes_of_thread`: that lie side by side in a row.
inline Side SideOf(const CudaRun& run, const StoredCodes& to, const Quantizer& quantizer, int64_t inner,
                   int codes_of_thread) {
  Side side;
  if (!to.codes.defined()) return side;
  const int bytes = codes_of_thread / (quantizer.format == Format::kE2M1 ? 2 : 1);
  side.codes = run.Data<uint8_t>(to.codes);
  side.outer = to.codes.rows;
  side.bytes = to.codes.cols;
  side.stride = to.codes.row_stride;
  side.vectors = reinterpret_cast<uintptr_t>(side.codes) % bytes == 0 && side.stride % bytes == 0;
  if (to.scales.defined()) {
    side.scales = run.Data<uint8_t>(to.scales);
    side.scale_cols = to.scales.cols;
    side.scale_stride = to.scales.row_stride;
  }
  if (to.tensor_scale.defined()) side.tensor_scale = run.Data<float>(to.tensor_scale);
  side.draw_cols = quantizer.DrawCols(inner);
  side.stochastic = quantizer.rounding == Rounding::kStochastic;
  side.scale_rule = quantizer.scale_rule;
  return side;
}

// Of each side, by the grid's first thread.
__device__ inline void SetTensorScale(const Side& side, float scale) {
  if (side.tensor_scale != nullptr && blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
    *side.tensor_scale = scale;
  }
}

// Four codes, one in each byte, in 16 bits.
__device__ inline uint16_t Nibbles(uint32_t codes) {
  const uint32_t pairs = (codes | codes >> 4) & 0x00ff00ff;
  return static_cast<uint16_t>(pairs | pairs >> 8);
}

template <typename Word, int kWords>
__device__ void StoreBytes(const Side& side, int64_t outer, int64_t byte, const Vec<Word, kWords>& words) {
  constexpr int kBytes = sizeof(Word) * kWords;
  uint8_t* to = side.codes + outer * side.stride + byte;
  if (side.vectors && byte + kBytes <= side.bytes) {
    StoreVec(reinterpret_cast<Word*>(to), words);
    return;
  }
  for (int i = 0; i < kBytes; ++i) {
    constexpr int kSize = sizeof(Word);
    if (byte + i < side.bytes) to[i] = static_cast<uint8_t>(words.of[i / kSize] >> (i % kSize * 8));
  }
}
// Four codes a word, of elements side by side in row `outer`, from `inner` on: what of them the row has.
template <Format kFormat, int kWords>
__device__ void StoreCodes(const Side& side, int64_t outer, int64_t inner, const uint32_t (&codes)[kWords]) {
  if (outer >= side.outer) return;
  if constexpr (kFormat == Format::kE2M1) {
    Vec<uint16_t, kWords> words;
    for (int i = 0; i < kWords; ++i) words.of[i] = Nibbles(codes[i]);
    StoreBytes(side, outer, inner / 2, words);
  } else {
    Vec<uint32_t, kWords> words;
    for (int i = 0; i < kWords; ++i) words.of[i] = codes[i];
    StoreBytes(side, outer, inner, words);
  }
}
// A thread's codes of its rows, and of its columns.
using RowCodes = uint32_t[kThreadRows][kThreadCols / 4];
using ColumnCodes = uint32_t[kThreadCols][1];
template <Format kFormat>
__device__ void StoreRows(const Side& side, int64_t row, int64_t col, const RowCodes& codes) {
  for (int r = 0; r < kThreadRows; ++r) StoreCodes<kFormat>(side, row + r, col, codes[r]);
}
template <Format kFormat>
__device__ void StoreColumns(const Side& side, int64_t row, int64_t col, const ColumnCodes& codes) {
  for (int c = 0; c < kThreadCols; ++c) StoreCodes<kFormat>(side, col + c, row, codes[c]);
}
// The same codes turned round, four by four.
__device__ inline void Turn(const RowCodes& rows, ColumnCodes& columns) {
  for (int half = 0; half < kThreadCols / 4; ++half) {
    const uint32_t low01 = __byte_perm(rows[0][half], rows[1][half], 0x5140);  // rows 0 and 1 of columns 0 and 1
    const uint32_t high01 = __byte_perm(rows[0][half], rows[1][half], 0x7362);
    const uint32_t low23 = __byte_perm(rows[2][half], rows[3][half], 0x5140);
    const uint32_t high23 = __byte_perm(rows[2][half], rows[3][half], 0x7362);
    columns[4 * half][0] = __byte_perm(low01, low23, 0x5410);
    columns[4 * half + 1][0] = __byte_perm(low01, low23, 0x7632);
    columns[4 * half + 2][0] = __byte_perm(high01, high23, 0x5410);
    columns[4 * half + 3][0] = __byte_perm(high01, high23, 0x7632);
  }
}

// Eight codes of a row of which `there` bytes are left, one in each byte; what is not there is zeros.
template <Format kFormat>
__device__ void LoadCodes(const uint8_t* from, int64_t there, bool vectors, uint32_t (&codes)[kThreadCols / 4]) {
  constexpr bool kPairs = kFormat == Format::kE2M1;
  constexpr int kWords = kPairs ? 1 : 2;
  Vec<uint32_t, kWords> words = {};
  if (vectors && there >= 4 * kWords) {
    words = LoadVec<uint32_t, kWords>(reinterpret_cast<const uint32_t*>(from));
  } else {
    for (int i = 0; i < 4 * kWords; ++i) {
      if (i < there) words.of[i / 4] |= uint32_t{from[i]} << (i % 4 * 8);
    }
  }
  for (int i = 0; i < kThreadCols / 4; ++i) {
    if constexpr (kPairs) {
      const uint32_t four = words.of[0] >> (16 * i) & 0xffff;
      const uint32_t pairs = (four | four << 8) & 0x00ff00ff;
      codes[i] = (pairs | pairs << 4) & 0x0f0f0f0f;
    } else {
      codes[i] = words.of[i];
    }
  }
}
// Codes that are read.
struct CodeMatrix {
  const uint8_t* data;
  int64_t rows, bytes, stride;
  bool vectors;

  CodeMatrix(const CudaRun& run, const Tensor& codes, Format format)
      : data(run.Data<uint8_t>(codes)), rows(codes.rows), bytes(codes.cols), stride(codes.row_stride) {
    const int at_once = kThreadCols / (format == Format::kE2M1 ? 2 : 1);
    vectors = reinterpret_cast<uintptr_t>(data) % at_once == 0 && stride % at_once == 0;
  }

  template <Format kFormat>
  __device__ void Load(int64_t row, int64_t col, RowCodes& codes) const {
    const int64_t byte = kFormat == Format::kE2M1 ? col / 2 : col;
    for (int r = 0; r < kThreadRows; ++r) {
      const int64_t there = row + r < rows ? bytes - byte : 0;
      LoadCodes<kFormat>(data + (row + r) * stride + byte, there, vectors, codes[r]);
    }
  }
};

// The magnitude's bits: compared as integers, a NaN is larger than all numbers.
__device__ inline uint32_t Magnitude(float value) { return BitsOf(value) & kMagnitudeBits; }

// The number of this lane among kLanes that lie kStride apart, and what the `number`-th of them has.
template <int kLanes, int kStride>
__device__ int NumberOfLane() {
  return static_cast<int>(threadIdx.x) / kStride % kLanes;
}
template <int kLanes, int kStride>
__device__ float FromLane(int number, float value) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  return __shfl_sync(kAllLanes, value, lane + (number - NumberOfLane<kLanes, kStride>()) * kStride);
}
// Each of kLanes lanes has kCount numbers; the i-th is left with the largest, over the lanes, of kCount / kLanes of
// these from i * kCount / kLanes on.
template <int kLanes, int kStride, int kCount>
__device__ void ShareLargest(uint32_t (&numbers)[kCount]) {
  if constexpr (kLanes > 1) {
    constexpr int kHalf = kCount / 2;
    constexpr int kApart = kStride * kLanes / 2;
    const bool upper = (threadIdx.x & kApart) != 0;
    uint32_t mine[kHalf];
    for (int i = 0; i < kHalf; ++i) {
      const uint32_t other = __shfl_xor_sync(kAllLanes, upper ? numbers[i] : numbers[kHalf + i], kApart);
      mine[i] = max(upper ? numbers[kHalf + i] : numbers[i], other);
    }
    ShareLargest<kLanes / 2, kStride>(mine);
    for (int i = 0; i < kHalf; ++i) numbers[i] = mine[i];
  }
}

// Raises *amax, the bits of a magnitude, to the largest of the block's; `scratch` is a number for each warp.
__device__ inline void RaiseAmax(uint32_t* amax, uint32_t largest, uint32_t* scratch) {
  constexpr int kWarps = kTileThreads / kWarp;
  largest = __reduce_max_sync(kAllLanes, largest);
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = largest;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 0; i < kWarps; ++i) largest = max(largest, scratch[i]);
  atomicMax(amax, largest);
}

// Where a call's random numbers come from.
struct RandomSource {
  const StepInputs* inputs;
  uint32_t stream;
};

// The words of random bits that a thread's kCount elements of each of kLines lines are rounded by: element i of a line
// has the number first + line * stride + i. What lanes kStride apart have side by side in a line are random numbers of
// one group; so each computes its share of the lines' groups, and they change words with each other.
template <int kBits, int kCount, int kLines, int kStride>
struct RoundingWords {
  static constexpr int kPerGroup = kBits == 9 ? 16 : 8;
  static constexpr int kShare = kPerGroup / kCount;
  static constexpr int kOwn = kLines / kShare;
  static constexpr int kWords = 4 / kShare;

  uint32_t words[kShare][kOwn][kWords];

  __device__ RoundingWords(const RandomSource& random, int64_t first, int64_t stride) {
    const StepInputs& inputs = *random.inputs;
    const int lane = NumberOfLane<kShare, kStride>();
    for (int own = 0; own < kOwn; ++own) {
      const int64_t element = first + (lane * kOwn + own) * stride;
      const PhiloxWords group =
          RandomGroup(inputs.seed, inputs.step, random.stream, static_cast<uint64_t>(element) / kPerGroup);
      for (int i = 0; i < 4; ++i) words[i / kWords][own][i % kWords] = group.of[i];
    }
    if constexpr (kShare >= 2) Exchange<1>(lane);
    if constexpr (kShare >= 4) Exchange<2>(lane);
  }

  // What rounds element i of a line.
  __device__ uint32_t Draw(int line, int i) const {
    const uint32_t(&of)[kWords] = words[line / kOwn][line % kOwn];
    if constexpr (kBits == 9) return of[i / 4] >> (i / 2 % 2 * 16 + i % 2 * 7) & 0x1ff;
    return of[i / 2] >> (i % 2 * 16) & 0xffff;
  }

 private:
  // Of lanes kApart lanes from each other, the lower's upper words and the upper's lower ones change places.
  template <int kApart>
  __device__ void Exchange(int lane) {
    const bool upper = (lane & kApart) != 0;
    for (int share = 0; share < kShare; ++share) {
      if ((share & kApart) != 0) continue;
      for (int own = 0; own < kOwn; ++own) {
        for (int i = 0; i < kWords; ++i) {
          uint32_t& low = words[share][own][i];
          uint32_t& high = words[share | kApart][own][i];
          const uint32_t other = __shfl_xor_sync(kAllLanes, upper ? low : high, kApart * kStride);
          low = upper ? other : low;
          high = upper ? high : other;
        }
      }
    }
  }
};
template <int kBits>
using RowWords = RoundingWords<kBits, kThreadCols, kThreadRows, 1>;
template <int kBits>
using ColumnWords = RoundingWords<kBits, kThreadRows, kThreadCols, kChunks>;

// The codes of value(0 … 3), rounded to nearest. Devices have an instruction for two codes of 8 bits, which is
// formats.h's Encode but of NaN.
template <Format kFormat, typename Value>
__device__ uint32_t NearestCodes(const Value& value) {
  const float v[4] = {value(0), value(1), value(2), value(3)};
  if constexpr (kFormat != Format::kE2M1) {
    if (v[0] == v[0] && v[1] == v[1] && v[2] == v[2] && v[3] == v[3]) {
      constexpr auto kInto = kFormat == Format::kE4M3 ? __NV_E4M3 : __NV_E5M2;
      const uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(v[0], v[1]), __NV_SATFINITE, kInto);
      const uint32_t high = __nv_cvt_float2_to_fp8x2(make_float2(v[2], v[3]), __NV_SATFINITE, kInto);
      return low | high << 16;
    }
  }
  uint32_t codes = 0;
  for (int i = 0; i < 4; ++i) codes |= uint32_t{Encode(kFormat, v[i])} << (8 * i);
  return codes;
}
// Rounded by draw(0 … 3), kBits random bits each.
template <Format kFormat, int kBits, typename Value, typename Draw>
__device__ uint32_t DrawnCodes(const Value& value, const Draw& draw) {
  uint32_t codes = 0;
  for (int i = 0; i < 4; ++i) codes |= uint32_t{Encode(kFormat, value(i), draw(i), kBits)} << (8 * i);
  return codes;
}

// Codes of value(r, c), of a thread's rows or columns from (row, col) on. kBits: of stochastic rounding; 0 where no
// side has it.
template <Format kFormat, int kBits, typename Value>
__device__ void EncodeRows(const Side& side, const RandomSource& random, int64_t row, int64_t col, const Value& value,
                           RowCodes& codes) {
  if constexpr (kBits != 0) {
    if (side.stochastic) {
      const RowWords<kBits> words(random, row * side.draw_cols + col, side.draw_cols);
      for (int r = 0; r < kThreadRows; ++r) {
        for (int c = 0; c < kThreadCols; c += 4) {
          codes[r][c / 4] = DrawnCodes<kFormat, kBits>([&](int i) { return value(r, c + i); },
                                                       [&](int i) { return words.Draw(r, c + i); });
        }
      }
      return;
    }
  }
  for (int r = 0; r < kThreadRows; ++r) {
    for (int c = 0; c < kThreadCols; c += 4) {
      codes[r][c / 4] = NearestCodes<kFormat>([&](int i) { return value(r, c + i); });
    }
  }
}
template <Format kFormat, int kBits, typename Value>
__device__ void EncodeColumns(const Side& side, const RandomSource& random, int64_t row, int64_t col,
                              const Value& value, ColumnCodes& codes) {
  if constexpr (kBits != 0) {
    if (side.stochastic) {
      const ColumnWords<kBits> words(random, kColumnwiseDraws + col * side.draw_cols + row, side.draw_cols);
      for (int c = 0; c < kThreadCols; ++c) {
        codes[c][0] =
            DrawnCodes<kFormat, kBits>([&](int i) { return value(i, c); }, [&](int i) { return words.Draw(c, i); });
      }
      return;
    }
  }
  for (int c = 0; c < kThreadCols; ++c) {
    codes[c][0] = NearestCodes<kFormat>([&](int i) { return value(i, c); });
  }
}

// The scales of a tile's rows, or of its columns, kBlocks of each: gathered in shared memory, for a row's lie side by
// side. (As tensor cores read them, tiles of 128 by 4, those of a tile would be side by side as a whole.)
template <int kBlocks>
using ScaleRow = Vec<uint8_t, kBlocks>;
// By kTile threads, of which this is the `thread`-th; `outer` and `block` are the tile's first.
template <int kBlocks>
__device__ void StoreScales(const Side& side, int64_t outer, int64_t block, int thread, const ScaleRow<kBlocks>* rows) {
  if (side.codes == nullptr || outer + thread >= side.outer) return;
  uint8_t* to = side.scales + (outer + thread) * side.scale_stride + block;
  const ScaleRow<kBlocks>& row = rows[thread];
  if (block + kBlocks <= side.scale_cols && reinterpret_cast<uintptr_t>(to) % kBlocks == 0) {
    StoreVec(to, row);
    return;
  }
  for (int i = 0; i < kBlocks; ++i) {
    if (block + i < side.scale_cols) to[i] = row.of[i];
  }
}
// Those of both sides, once the whole block has put them there.
template <int kBlocks>
__device__ void StoreScales(const Side& row, const Side& col, const ScaleRow<kBlocks>* of_rows,
                            const ScaleRow<kBlocks>* of_columns) {
  static_assert(kTileThreads == 2 * kTile);
  constexpr int kSize = kTile / kBlocks;
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kTile) {
    StoreScales(row, TileRow(), TileCol() / kSize, thread, of_rows);
  } else {
    StoreScales(col, TileCol(), TileRow() / kSize, thread - kTile, of_columns);
  }
}

// quantize_nv.cu's, dequantize.cu's and transpose_quantized.cu's.
void QuantizeNvCuda(const OpCall& call, const CudaRun& run);
void AddDequantizeCuda(CudaKernelTable& table);
void AddTransposeQuantizedCuda(CudaKernelTable& table);
// The largest magnitudes of x, as bits, into scratch: of x as it is, unless it is not asked for, and transformed along
// its columns if `transformed`.
uint32_t* AmaxesOf(const Tensor& x, const Tensor& scratch, bool plain, bool transformed, const CudaRun& run);

// Calls fn(T{}) with the type of x's elements.
template <typename Fn>
void WithQuantizedType(const Tensor& x, const Fn& fn) {
  if (x.dtype == DType::kF32) return fn(float{});
  fn(__nv_bfloat16{});
}

}  // namespace ridgeline
