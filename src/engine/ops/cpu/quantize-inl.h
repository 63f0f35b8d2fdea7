// Tiles of a matrix, and how those with one scale or mxfp8's scales are quantized: rows as they lie, and columns
// transposed, 32 at a time in as many lanes. quantize_nv-inl.h has nvfp4's. Included once for each target, inside of
// Highway's foreach_target.h.

#include "engine/ops/cpu/simd_targets.h"

#if defined(RIDGELINE_OPS_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_OPS_QUANTIZE_INL_H_
#undef RIDGELINE_OPS_QUANTIZE_INL_H_
#else
#define RIDGELINE_OPS_QUANTIZE_INL_H_
#endif

#include "engine/ops/cpu/amax-inl.h"
#include "engine/ops/cpu/codes-inl.h"
#include "engine/ops/cpu/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

constexpr int64_t kTileRows = kQuantizeTileRows;
constexpr int64_t kTileCols = kQuantizeTileCols;
constexpr int64_t kUnit = 32;  // a multiple of every block of elements, and of kBlock
static_assert(kUnit % kBlock == 0 && kTileRows % kUnit == 0 && kTileCols % kUnit == 0 && kUnit == kTransposeCols);
constexpr int64_t RoundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Which rows of the next tile one pass over a tile fetches.
enum class Fetches : uint8_t { kAll, kEven, kOdd, kNone };

// A part of x, and its position in it. Its rows and columns may be read up to whole units; there are zeros beyond its
// end.
template <typename T>
struct Tile {
  const T* x = nullptr;
  int64_t stride = 0;
  int64_t row = 0, rows = 0;
  int64_t col = 0, cols = 0;
  const T* next = nullptr;  // the tile that this thread takes next, if any
  Fetches fetches = Fetches::kAll;

  const T* Row(int64_t r) const { return x + r * stride; }
  int64_t whole_rows() const { return RoundUp(rows, kUnit); }
  int64_t whole_cols() const { return RoundUp(cols, kUnit); }

  // Fetches row r of the next tile into the second-level cache, if this pass over the tile should. The processor's own
  // prefetching does not see tiles, and too many requests at once would stall.
  HWY_INLINE void FetchNext(int64_t r) const {
    if (next == nullptr || fetches == Fetches::kNone) return;
    if (fetches != Fetches::kAll && (fetches == Fetches::kEven) != (r % 2 == 0)) return;
    const T* from = next + r * stride;
    for (int64_t i = 0; i < kTileCols; i += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(from + i, 0, 2);
  }
  // Fetches the next tile's rows for step i of `steps` in a pass over this one.
  HWY_INLINE void FetchNextPart(int64_t i, int64_t steps) const {
    for (int64_t r = i * kTileRows / steps; r < (i + 1) * kTileRows / steps; ++r) FetchNext(r);
  }
  Tile Fetching(Fetches which) const {
    Tile use = *this;
    use.fetches = which;
    return use;
  }
};

// A matrix of bytes.
struct Bytes {
  uint8_t* data = nullptr;
  int64_t stride = 0;

  uint8_t* At(int64_t row, int64_t col) const { return data + row * stride + col; }
};

// One orientation of the result.
struct Side {
  Bytes codes;  // nullptr: not wanted
  Bytes scales;
  int64_t draw_cols = 0;  // random numbers in a row
  bool stream = false;    // store codes past the caches
  RandomBlocks random;
};

inline constexpr int64_t kMxSize = 32;

// Whether MxBits can encode T.
template <typename T>
inline constexpr bool kMxBf16 = std::is_same_v<T, uint16_t>;

// Computes the scales of `count` blocks with these amaxes: their codes, and, in place of the amaxes, the factors for
// the elements. There is space for whole vectors.
HWY_INLINE void MxScales(ScaleRule rule, int64_t count, float* amaxes, uint8_t* codes) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const BlockScale scale = MxScale(hn::Load(DF(), amaxes + i), rule);
    hn::Store(scale.value, DF(), amaxes + i);
    hn::StoreU(hn::TruncateTo(DB(), scale.code), DB(), codes + i);
  }
}

// Copies `count` bytes, which usually are 8 and take one move.
HWY_INLINE void CopyFew(const uint8_t* from, int64_t count, uint8_t* to) {
  if (HWY_LIKELY(count == 8)) {
    std::memcpy(to, from, 8);
  } else {
    std::memcpy(to, from, static_cast<size_t>(count));
  }
}

// Encodes a row of n elements, n whole units. scaled(i, values) and draw(i), the random bits of two blocks, are called
// for blocks of elements from i on.
template <Format kFormat, bool kUsual = false, typename T, typename Scaled, typename Draw>
HWY_INLINE void EncodeRow(const T* x, int64_t n, const Scaled& scaled, const Draw& draw, uint8_t* codes, bool stream) {
  for (int64_t i = 0; i < n; i += 2 * kBlock) {
    const auto draws = draw(i);
    HWY_UNROLL(2)
    for (int64_t k = 0; k < 2; ++k) {
      const int64_t at = i + k * kBlock;
      if (k > 0 && at >= n) break;
      const Pair value = scaled(at, Load<true>(x + at, Full()));
      StoreCodes<kFormat>(EncodePair<kFormat, kUsual>(value, draws[k]), codes + at / kBlock * kCodeBytes<kFormat>,
                          stream);
    }
  }
}

// EncodeRow by MxBits, for blocks with these scales. Returns false if that is impossible; codes are then arbitrary.
HWY_INLINE bool EncodeMxRow(const uint16_t* x, int64_t n, const uint8_t* scales, uint8_t* codes, bool stream) {
  VH others = hn::Zero(DH());
  bool usual = true;
  for (int64_t i = 0; i < n; i += kBlock) {
    const uint8_t scale = scales[i / kMxSize];
    usual &= scale >= MxBits::kFirst && scale <= MxBits::kLast;
    const auto code = hn::TruncateTo(DCodes(), MxBits(hn::Set(DH(), scale)).Encode(hn::LoadU(DH(), x + i), others));
    StoreVector(DCodes(), code, codes + i, stream);
  }
  return usual && AllZero(others);
}
// The same for a block of kBlock columns.
HWY_INLINE bool EncodeMxColumns(const uint16_t* x, int64_t stride, CodePair scale, uint8_t* bytes) {
  const VH scales = hn::BitCast(DH(), hn::Or(scale.a, hn::ShiftLeft<16>(scale.b)));
  const auto low = hn::SaturatedSub(hn::Set(DH(), MxBits::kFirst), scales);
  const auto high = hn::SaturatedSub(scales, hn::Set(DH(), MxBits::kLast));
  VH others = hn::Or(low, high);
  if (!AllZero(others)) return false;
  const MxBits bits(scales);
  for (int64_t r = 0; r < kMxSize; ++r) {
    const auto code = bits.Encode(hn::LoadU(DH(), x + r * stride), others);
    hn::StoreU(hn::TruncateTo(DCodes(), code), DCodes(), bytes + r * kUnit);
  }
  return AllZero(others);
}

// Quantizes rows with blocks along them.
template <bool kStochastic, typename T>
HWY_NOINLINE void QuantizeMxRows(const Tile<T>& tile, const Side& side, ScaleRule rule) {
  const int64_t n = tile.whole_cols();
  const int64_t blocks = n / kMxSize;
  alignas(64) float factors[kTileRows * kTileCols / kMxSize];
  alignas(64) uint8_t scales[kTileRows * kTileCols / kMxSize];
  for (int64_t r = 0; r < tile.rows; ++r) BlockAmaxes<kMxSize>(tile.Row(r), n, factors + r * blocks);
  MxScales(rule, tile.rows * blocks, factors, scales);
  for (int64_t r = 0; r < tile.rows; ++r) {
    tile.FetchNext(r);
    CopyFew(scales + r * blocks, blocks, side.scales.At(tile.row + r, tile.col / kMxSize));
    const auto scaled = [&](int64_t i, Pair v) HWY_ATTR {
      const VF scale = ScaleOf<kMxSize>(factors + r * blocks, i);
      return Times(v, {scale, scale});
    };
    const auto draw = [&]([[maybe_unused]] int64_t i) HWY_ATTR {
      if constexpr (kStochastic) {
        return side.random.RoundingBlocks((tile.row + r) * side.draw_cols + tile.col + i);
      } else {
        return Nearest();
      }
    };
    uint8_t* codes = side.codes.At(tile.row + r, tile.col);
    bool done = false;
    if constexpr (kMxBf16<T> && !kStochastic)
      done = EncodeMxRow(tile.Row(r), n, scales + r * blocks, codes, side.stream);
    if (!done) EncodeRow<Format::kE4M3>(tile.Row(r), n, scaled, draw, codes, side.stream);
  }
}

// Encodes a block of kBlock columns, in bytes of as many rows.
template <bool kStochastic, typename T>
HWY_INLINE void EncodeMxBlock(const T* x, int64_t stride, Pair factor, const RandomBlocks& random, int64_t element,
                              int64_t draw_cols, uint8_t* bytes) {
  for (int64_t r = 0; r < kMxSize; r += 8) {
    const auto draw = [&] {
      if constexpr (kStochastic) {
        return random.RoundingColumns(kColumnwiseDraws + element + r, draw_cols);
      } else {
        return Nearest();
      }
    }();
    HWY_UNROLL(8)
    for (int64_t k = 0; k < 8; ++k) {
      const Pair value = Times(Load<true>(x + (r + k) * stride, Full()), factor);
      StoreBytes(EncodePair<Format::kE4M3>(value, draw[k]), bytes + (r + k) * kUnit);
    }
  }
}

// Quantizes columns with blocks along them.
template <bool kStochastic, typename T>
HWY_NOINLINE void QuantizeMxColumns(const Tile<T>& tile, const Side& side, ScaleRule rule) {
  alignas(64) uint8_t bytes[kTileRows * kUnit];
  alignas(64) uint8_t scales[kTileRows / kMxSize * kUnit];
  const int64_t groups = (tile.rows + kMxSize - 1) / kMxSize;
  constexpr int64_t kGroups = kTileRows / kMxSize;
  for (int64_t first = 0; first < tile.cols; first += kUnit) {
    for (int64_t col = 0; col < kUnit; col += kBlock) {
      for (int64_t g = 0; g < groups; ++g) {
        tile.FetchNextPart((first + col) / kBlock * kGroups + g, kTileCols / kBlock * kGroups);
        const T* x = tile.Row(g * kMxSize) + first + col;
        Amax<T> amax;
        for (int64_t r = 0; r < kMxSize; ++r) amax.Add(x + r * tile.stride);
        const Pair largest = amax.Columns();
        const BlockScale a = MxScale(largest.a, rule);
        const BlockScale b = MxScale(largest.b, rule);
        StoreBytes({a.code, b.code}, scales + g * kUnit + col);
        uint8_t* to = bytes + g * kMxSize * kUnit + col;
        bool done = false;
        if constexpr (kMxBf16<T> && !kStochastic) done = EncodeMxColumns(x, tile.stride, {a.code, b.code}, to);
        const int64_t element = (tile.col + first + col) * side.draw_cols + tile.row + g * kMxSize;
        if (done) continue;
        EncodeMxBlock<kStochastic>(x, tile.stride, {a.value, b.value}, side.random, element, side.draw_cols, to);
      }
    }
    const int64_t outer = tile.col + first;
    const int64_t cols = std::min(kUnit, tile.cols - first);
    TransposeBytes(bytes, kUnit, groups * kMxSize, cols, side.codes.At(outer, tile.row), side.codes.stride,
                   side.stream);
    for (int64_t c = 0; c < cols; ++c) {
      uint8_t* to = side.scales.At(outer + c, tile.row / kMxSize);
      for (int64_t g = 0; g < groups; ++g) to[g] = scales[g * kUnit + c];
    }
  }
}

// Calls by_row(tile) and by_col(tile), which share the fetching of the next tile.
template <typename T, typename ByRow, typename ByCol>
void ForSides(const Tile<T>& tile, const Side& row, const Side& col, const ByRow& by_row, const ByCol& by_col) {
  if (row.codes.data != nullptr && col.codes.data != nullptr) {
    by_row(tile.Fetching(Fetches::kEven));
    by_col(tile.Fetching(Fetches::kOdd));
  } else if (row.codes.data != nullptr) {
    by_row(tile);
  } else {
    by_col(tile);
  }
}

// The place for the codes of a tile's rows, kPerByte to a byte, which are those of its columns, too. It is a buffer of
// its own if the codes are read again, transposed, which takes a whole tile of them, or are copied past the caches.
class RowCodes {
 public:
  template <typename T>
  RowCodes(const Tile<T>& tile, const Side& row, const Side& col, int64_t per_byte, uint8_t* own)
      : to_(row.codes.data == nullptr ? Bytes{} : Bytes{row.codes.At(tile.row, tile.col / per_byte), row.codes.stride}),
        stream_(row.stream),
        rows_there_(tile.rows) {
    const bool whole = tile.rows % kUnit == 0 && tile.cols % kUnit == 0;
    direct_ = to_.data != nullptr && whole && !(col.codes.data != nullptr && row.stream);
    codes_ = direct_ ? to_ : Bytes{own, kTileCols / per_byte};
    rows_ = direct_ ? tile.rows : tile.whole_rows();
  }
  int64_t rows() const { return rows_; }
  uint8_t* At(int64_t row) const { return codes_.At(row, 0); }
  int64_t stride() const { return codes_.stride; }
  bool streams() const { return direct_ && stream_; }
  // Copies rows of `bytes` to their destination, if they are wanted and not there yet.
  void Store(int64_t bytes) const {
    if (to_.data == nullptr || direct_) return;
    for (int64_t r = 0; r < rows_there_; ++r) CopyBytes(At(r), bytes, to_.At(r, 0), stream_);
  }

 private:
  Bytes to_;
  Bytes codes_;
  bool stream_;
  bool direct_;
  int64_t rows_there_;
  int64_t rows_;
};

// One scale for all: rows and columns have the same codes. Returns the tile's amax.
template <Format kFormat, bool kStochastic, typename T>
HWY_NOINLINE float QuantizeWhole(const Tile<T>& tile, const Side& row, const Side& col, float scale) {
  alignas(64) uint8_t own[kTileRows * kTileCols];
  const int64_t n = tile.whole_cols();
  const RowCodes codes(tile, row, col, 1, own);
  Amax<T> amax;
  for (int64_t r = 0; r < codes.rows(); ++r) {
    tile.FetchNext(r);
    const T* x = tile.Row(r);
    const auto scaled = [&](int64_t i, Pair v) HWY_ATTR {
      amax.Add(x + i);
      return Times(v, SplatPair(scale));
    };
    const auto draw = [&]([[maybe_unused]] int64_t i) HWY_ATTR {
      if constexpr (kStochastic) {
        return row.random.RoundingBlocks((tile.row + r) * row.draw_cols + tile.col + i);
      } else {
        return Nearest();
      }
    };
    EncodeRow<kFormat>(x, n, scaled, draw, codes.At(r), codes.streams());
  }
  for (int64_t c = 0; col.codes.data != nullptr && c < tile.cols; c += kUnit) {
    TransposeBytes(codes.At(0) + c, codes.stride(), tile.rows, std::min(kUnit, tile.cols - c),
                   col.codes.At(tile.col + c, tile.row), col.codes.stride, col.stream);
  }
  codes.Store(tile.cols);
  return amax.Largest();
}

template <typename T>
HWY_NOINLINE float AmaxOf(const Tile<T>& tile) {
  Amax<T> amax;
  for (int64_t r = 0; r < tile.rows; ++r) {
    tile.FetchNext(r);
    for (int64_t i = 0; i < tile.whole_cols(); i += kBlock) amax.Add(tile.Row(r) + i);
  }
  return amax.Largest();
}
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();
#endif
