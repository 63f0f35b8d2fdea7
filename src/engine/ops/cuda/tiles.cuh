// Code that the kernels of 8- and 4-bit codes share: how a matrix is divided, loaded and stored, in both orientations.
//
// A block of threads handles a tile of 128 by 128 elements, of which a thread has patches of 4 rows of 8 columns.
//
// If elements share scales or are transformed together, a warp handles units of 32 by 32. Elements that do so then lie
// within a warp, in either orientation, and codes need no shared memory: a row's are stored 8 at a time, a column's 4,
// and a unit's as whole sectors in either orientation (half sectors for 4-bit codes).
//
// Otherwise a thread handles one patch, and a warp 8 whole rows of the tile, so that it loads and stores whole lines.
// Columns are turned into rows in shared memory and stored likewise. If there are only `whole` patches, kernels are
// compiled for these alone, so that a thread's loads are in flight together. (In units, with each load in its own
// branch, an H200 moved half as much as in a copy.)
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/kernel.h"
#include "engine/device/cuda/launch.h"
#include "engine/ops/quantize.h"

namespace ridgeline::engine {

constexpr int kTile = 128;
constexpr int kUnit = 32;
constexpr int kTileThreads = 256;  // 8 warps, 4 down and 2 across, that take two units each
constexpr int kThreadRows = 4;
constexpr int kThreadCols = 8;
constexpr int kChunks = kUnit / kThreadCols;  // lanes of a unit's row, which are neighbours
constexpr int kQuads = kUnit / kThreadRows;   // lanes of a unit's column, at distances of kChunks

constexpr int kRowPatches = kTile / kThreadCols;  // patches of a tile's row, which are neighbours
constexpr int kPatchThreads = kTile * kTile / kThreadRows / kThreadCols;  // threads with one patch each

// CUDA allows 65535 tiles down: 8 million rows.
inline LaunchShape TilesOf(int64_t rows, int64_t cols, int threads = kTileThreads) {
  return {dim3(BlocksFor(cols, kTile), BlocksFor(rows, kTile)), dim3(threads)};
}

// The beginning of a thread's rows and columns in its tile: those of its k-th unit, or of its only patch.
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
__device__ inline Place PlaceOfPatch() {
  const int thread = static_cast<int>(threadIdx.x);
  return {thread / kRowPatches * kThreadRows, thread % kRowPatches * kThreadCols};
}
__device__ inline int64_t TileRow() { return int64_t{blockIdx.y} * kTile; }
__device__ inline int64_t TileCol() { return int64_t{blockIdx.x} * kTile; }

// A matrix that is read. Missing elements are zeros.
template <typename T>
struct Matrix {
  const T* data;
  int64_t rows, cols, stride;
  bool vectors;  // whether 8 elements from a multiple of 8 on may be loaded as 16 bytes

  Matrix(const CudaRun& run, const Tensor& x)
      : data(run.Data<T>(x)),
        rows(x.rows),
        cols(x.cols),
        stride(x.row_stride),
        vectors(reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride * static_cast<int64_t>(sizeof(T)) % 16 == 0) {}

  // A patch as in memory, which takes fewer registers than its numbers.
  static constexpr int kOfWord = 4 / sizeof(T);
  struct Words {
    uint32_t of[kThreadRows][kThreadCols / kOfWord];
  };
  // The r-th row of the patch at (row, col). kWhole: a missing patch is replaced with the first one, which raises no
  // largest magnitude.
  template <bool kWhole>
  __device__ void LoadRow(int64_t row, int64_t col, int r, uint32_t (&words)[kThreadCols / kOfWord]) const {
    if constexpr (kWhole) {
      const T* from = data + (row < rows && col < cols ? row * stride + col : 0);
      for (int w = 0; w < kThreadCols / kOfWord; w += 4) {
        const auto vec = LoadVec<uint32_t, 4>(reinterpret_cast<const uint32_t*>(from + r * stride) + w);
        for (int i = 0; i < 4; ++i) words[w + i] = vec.of[i];
      }
    } else {
      for (int c = 0; c < kThreadCols; c += kOfWord) {
        Vec<T, kOfWord> elements = {};
        for (int i = 0; i < kOfWord; ++i) {
          if (row + r < rows && col + c + i < cols) elements.of[i] = data[(row + r) * stride + col + c + i];
        }
        words[c / kOfWord] = __builtin_bit_cast(uint32_t, elements);
      }
    }
  }
  template <bool kWhole>
  __device__ void Load(int64_t row, int64_t col, Words& words) const {
    for (int r = 0; r < kThreadRows; ++r) LoadRow<kWhole>(row, col, r, words.of[r]);
  }
  __device__ static void ToFloats(const uint32_t (&words)[kThreadCols / kOfWord], float (&values)[kThreadCols]) {
    for (int c = 0; c < kThreadCols; c += kOfWord) {
      const auto elements = __builtin_bit_cast(Vec<T, kOfWord>, words[c / kOfWord]);
      for (int i = 0; i < kOfWord; ++i) values[c + i] = ToFloat(elements.of[i]);
    }
  }
  __device__ static void ToFloats(const Words& words, float (&values)[kThreadRows][kThreadCols]) {
    for (int r = 0; r < kThreadRows; ++r) ToFloats(words.of[r], values[r]);
  }
  // The r-th row of the patch as numbers.
  template <bool kWhole>
  __device__ void LoadRow(int64_t row, int64_t col, int r, float (&values)[kThreadCols]) const {
    uint32_t words[kThreadCols / kOfWord];
    LoadRow<kWhole>(row, col, r, words);
    ToFloats(words, values);
  }

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

// Calls fn(place in the tile, row, column, values) for each of this thread's units of x: 4 rows of 8 columns from there
// on. Source: Matrix, or a type that loads numbers as it does.
template <typename Source, typename Fn>
__device__ __forceinline__ void ForUnits(const Source& x, const Fn& fn) {
  for (int k = 0; k < kUnitsOfWarp; ++k) {
    const Place place = PlaceOf(k);
    const int64_t row = TileRow() + place.row;
    const int64_t col = TileCol() + place.col;
    float values[kThreadRows][kThreadCols];
    x.Load(row, col, values);
    fn(place, row, col, values);
  }
}

// One orientation of a quantized matrix.
struct Side {
  uint8_t* codes = nullptr;  // null: not wanted
  int64_t outer = 0;
  int64_t bytes = 0;  // bytes of a row's codes
  int64_t stride = 0;
  bool vectors = false;  // whether a thread's codes of a row may be stored at once
  uint8_t* scales = nullptr;
  int64_t scale_cols = 0;
  int64_t scale_stride = 0;
  float* tensor_scale = nullptr;
  int64_t draw_cols = 0;  // random numbers per row
  bool stochastic = false;
  ScaleRule scale_rule = ScaleRule::kRoundUp;
};
// `codes_of_thread`: the number of contiguous codes in a row.
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

// Whether each patch of a matrix, and of the results, is either whole or missing, and moves as vectors.
inline bool WholePatches(int64_t rows, int64_t cols, bool vectors, const Side& row, const Side& col) {
  return rows % kThreadCols == 0 && cols % kThreadCols == 0 && vectors && (row.codes == nullptr || row.vectors) &&
         (col.codes == nullptr || col.vectors);
}

// For each side, by the grid's first thread.
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

// A thread's codes of its rows, and of its columns: four per word, one in each byte.
using RowCodes = uint32_t[kThreadRows][kThreadCols / 4];
using ColumnCodes = uint32_t[kThreadCols][1];

// Codes of kLines rows from `outer` on, contiguous from `inner` on. Stores only those inside the matrix.
template <Format kFormat, bool kWhole = false, int kLines, int kWords>
__device__ void StoreCodes(const Side& side, int64_t outer, int64_t inner, const uint32_t (&codes)[kLines][kWords]) {
  constexpr bool kPairs = kFormat == Format::kE2M1;
  using Word = std::conditional_t<kPairs, uint16_t, uint32_t>;
  constexpr int kSize = sizeof(Word);
  constexpr int kBytes = kSize * kWords;
  const int64_t byte = kPairs ? inner / 2 : inner;
  if (kWhole && (outer >= side.outer || byte >= side.bytes)) return;
  for (int line = 0; line < kLines; ++line) {
    if (!kWhole && outer + line >= side.outer) return;
    uint8_t* to = side.codes + (outer + line) * side.stride + byte;
    Vec<Word, kWords> words;
    for (int i = 0; i < kWords; ++i) words.of[i] = kPairs ? Nibbles(codes[line][i]) : codes[line][i];
    if (kWhole || (side.vectors && byte + kBytes <= side.bytes)) {
      StoreVec(reinterpret_cast<Word*>(to), words);
    } else {
      for (int i = 0; i < kBytes; ++i) {
        if (byte + i < side.bytes) to[i] = static_cast<uint8_t>(words.of[i / kSize] >> (i % kSize * 8));
      }
    }
  }
}
// The same codes transposed, four by four.
__device__ inline void TurnCodes(const RowCodes& rows, ColumnCodes& columns) {
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

// A tile's codes between the two orientations: its columns, 8 rows at a time.
using TurnedTile = Vec<uint32_t, 2>[kTile][kRowPatches];
// Converts a thread's codes of its patch to those at the same place of the transposed tile. Called by all kPatchThreads
// threads, once for a `tile`.
__device__ inline void TurnTile(const RowCodes& codes, TurnedTile& tile, RowCodes& turned) {
  ColumnCodes columns;
  TurnCodes(codes, columns);
  const auto down = threadIdx.x / kRowPatches;
  const auto across = threadIdx.x % kRowPatches;
  const auto at = across ^ down / 2;  // so that a warp's writes, and its reads, use different banks
  for (int c = 0; c < kThreadCols; ++c) tile[across * kThreadCols + c][at].of[down % 2] = columns[c][0];
  __syncthreads();
  for (int r = 0; r < kThreadRows; ++r) {
    const Vec<uint32_t, 2> line = tile[down * kThreadRows + r][at];
    turned[r][0] = line.of[0];
    turned[r][1] = line.of[1];
  }
}

// Eight codes of a row, one in each byte, of which `there` bytes remain; missing codes are zeros.
template <Format kFormat, bool kWhole>
__device__ void LoadCodes(const uint8_t* from, int64_t there, bool vectors, uint32_t (&codes)[kThreadCols / 4]) {
  constexpr bool kPairs = kFormat == Format::kE2M1;
  constexpr int kWords = kPairs ? 1 : 2;
  Vec<uint32_t, kWords> words = {};
  if (kWhole ? there > 0 : vectors && there >= 4 * kWords) {
    words = LoadVec<uint32_t, kWords>(reinterpret_cast<const uint32_t*>(from));
  } else if (!kWhole) {
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
// A matrix of codes that is read.
struct CodeMatrix {
  const uint8_t* data;
  int64_t rows, bytes, stride;
  bool vectors;

  CodeMatrix(const CudaRun& run, const Tensor& codes, Format format)
      : data(run.Data<uint8_t>(codes)), rows(codes.rows), bytes(codes.cols), stride(codes.row_stride) {
    const int at_once = kThreadCols / (format == Format::kE2M1 ? 2 : 1);
    vectors = reinterpret_cast<uintptr_t>(data) % at_once == 0 && stride % at_once == 0;
  }

  template <Format kFormat, bool kWhole = false>
  __device__ void Load(int64_t row, int64_t col, RowCodes& codes) const {
    const int64_t byte = kFormat == Format::kE2M1 ? col / 2 : col;
    for (int r = 0; r < kThreadRows; ++r) {
      const int64_t there = row + (kWhole ? 0 : r) < rows ? bytes - byte : 0;
      LoadCodes<kFormat, kWhole>(data + (row + r) * stride + byte, there, vectors, codes[r]);
    }
  }
};

// Defined in quantize_nv.cu, dequantize.cu and transpose_quantized.cu.
void QuantizeNvCuda(const OpCall& call, const CudaRun& run);
void AddDequantizeCuda(CudaKernelTable& table);
void AddTransposeQuantizedCuda(CudaKernelTable& table);
// Writes the largest magnitudes of x, as bits, into scratch: that of x unchanged if `plain`, and that of x transformed
// along its columns if `transformed`.
uint32_t* AmaxesOf(const Tensor& x, const Tensor& scratch, bool plain, bool transformed, const CudaRun& run);

// Calls fn(T{}) with the type of x's elements.
template <typename Fn>
void WithQuantizedType(const Tensor& x, const Fn& fn) {
  if (x.dtype == DType::kF32) return fn(float{});
  fn(__nv_bfloat16{});
}

}  // namespace ridgeline::engine
