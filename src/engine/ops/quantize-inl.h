// Tiles of a matrix quantized: their rows as they lie, and transposed their columns, 32 at a time in as many lanes.
// Included once for each target, inside of Highway's foreach_target.h.

#include "engine/ops/simd_targets.h"

#if defined(RIDGELINE_OPS_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_OPS_QUANTIZE_INL_H_
#undef RIDGELINE_OPS_QUANTIZE_INL_H_
#else
#define RIDGELINE_OPS_QUANTIZE_INL_H_
#endif

#include "engine/ops/amax-inl.h"
#include "engine/ops/attrs.h"
#include "engine/ops/codes-inl.h"
#include "engine/ops/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline {
namespace HWY_NAMESPACE {

constexpr int64_t kTileRows = kQuantizeTileRows;
constexpr int64_t kTileCols = kQuantizeTileCols;
constexpr int64_t kUnit = 32;  // a multiple of every block of elements, and of kBlock
static_assert(kUnit % kBlock == 0 && kTileRows % kUnit == 0 && kTileCols % kUnit == 0 && kUnit == kTransposeCols);
constexpr int64_t RoundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Which rows of the next tile a use of a tile fetches.
enum class Fetches : uint8_t { kAll, kEven, kOdd, kNone };

// A part of x, and where it lies in it. Its rows and columns may be read up to whole units: zeros beyond those that are
// there.
template <typename T>
struct Tile {
  const T* x = nullptr;
  int64_t stride = 0;
  int64_t row = 0, rows = 0;
  int64_t col = 0, cols = 0;
  const T* next = nullptr;  // the tile that this thread takes after it, if any
  Fetches fetches = Fetches::kAll;

  const T* Row(int64_t r) const { return x + r * stride; }
  int64_t whole_rows() const { return RoundUp(rows, kUnit); }
  int64_t whole_cols() const { return RoundUp(cols, kUnit); }

  // Fetches row r of the next tile into the second cache, if this use of the tile is to. The processor's own
  // prefetching does not see tiles; and what is asked for all at once is waited for.
  HWY_INLINE void FetchNext(int64_t r) const {
    if (next == nullptr || fetches == Fetches::kNone) return;
    if (fetches != Fetches::kAll && (fetches == Fetches::kEven) != (r % 2 == 0)) return;
    const T* from = next + r * stride;
    for (int64_t i = 0; i < kTileCols; i += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(from + i, 0, 2);
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
  Bytes codes;  // of nullptr: not wanted
  Bytes scales;
  int64_t draw_cols = 0;  // random numbers of a row
  bool stream = false;    // codes past the caches
  RandomBlocks random;
};

// The scales of a tile's 16x16 blocks.
struct SquareScales {
  alignas(64) float divisors[kTileRows / 16][kTileCols / 16];
  alignas(64) uint8_t codes[kTileRows / 16][kTileCols / 16];
};

// What scales blocks have, and what is done with them. kShared: they are there already, shared by 16 rows and columns;
// else each block's comes from its own amax.
struct Mx {
  static constexpr Format kFormat = Format::kE4M3;
  static constexpr int64_t kSize = 32;
  static constexpr bool kShared = false;
  ScaleRule rule;
  HWY_INLINE BlockScale Scale(VF amax) const { return MxScale(amax, rule); }
  static HWY_INLINE Pair Scaled(Pair x, Pair factor) { return Times(x, factor); }
};
struct Nv {
  static constexpr Format kFormat = Format::kE2M1;
  static constexpr int64_t kSize = 16;
  static constexpr bool kShared = false;
  float encode_scale;
  float tensor_scale;
  HWY_INLINE BlockScale Scale(VF amax) const { return NvScale(amax, encode_scale, tensor_scale); }
  static HWY_INLINE Pair Scaled(Pair x, Pair divisor) { return {hn::Div(x.a, divisor.a), hn::Div(x.b, divisor.b)}; }
};
struct Square {
  static constexpr Format kFormat = Format::kE2M1;
  static constexpr int64_t kSize = 16;
  static constexpr bool kShared = true;
  const SquareScales& scales;
  static HWY_INLINE Pair Scaled(Pair x, Pair divisor) { return Nv::Scaled(x, divisor); }
};

// What MxBits can do.
template <typename Kind, typename T>
inline constexpr bool kMxBf16 = std::is_same_v<Kind, Mx>&& std::is_same_v<T, uint16_t>;

// The scales of `count` blocks with these amaxes: their codes, and what is done to elements in place of the amaxes.
// There is room for whole vectors.
template <typename Kind>
HWY_INLINE void BlockScales(const Kind& kind, int64_t count, float* amaxes, uint8_t* codes) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const BlockScale scale = kind.Scale(hn::Load(DF(), amaxes + i));
    hn::Store(scale.value, DF(), amaxes + i);
    hn::StoreU(hn::TruncateTo(DB(), scale.code), DB(), codes + i);
  }
}

// Codes of a row of n elements, n whole units. scaled(i, values) and draw(i), random bits of two blocks, are asked for
// blocks of elements from i on.
template <Format kFormat, typename T, typename Scaled, typename Draw>
HWY_INLINE void EncodeRow(const T* x, int64_t n, const Scaled& scaled, const Draw& draw, uint8_t* codes, bool stream) {
  for (int64_t i = 0; i < n; i += 2 * kBlock) {
    const auto draws = draw(i);
    HWY_UNROLL(2)
    for (int64_t k = 0; k < 2; ++k) {
      const int64_t at = i + k * kBlock;
      if (k > 0 && at >= n) break;
      const Pair value = scaled(at, Load<true>(x + at, Full()));
      StoreCodes<kFormat>(EncodePair<kFormat>(value, draws[k]), codes + at / kBlock * kCodeBytes<kFormat>, stream);
    }
  }
}

// EncodeRow by MxBits, of blocks with these scales. Returns false where that cannot be; codes are then arbitrary.
HWY_INLINE bool EncodeMxRow(const uint16_t* x, int64_t n, const uint8_t* scales, uint8_t* codes, bool stream) {
  VH others = hn::Zero(DH());
  bool usual = true;
  for (int64_t i = 0; i < n; i += kBlock) {
    const uint8_t scale = scales[i / Mx::kSize];
    usual &= scale >= MxBits::kFirst && scale <= MxBits::kLast;
    const auto code = hn::TruncateTo(DCodes(), MxBits(hn::Set(DH(), scale)).Encode(hn::LoadU(DH(), x + i), others));
    if (stream && hn::MaxLanes(DCodes()) >= 16) {
      hn::Stream(code, DCodes(), codes + i);
    } else {
      hn::StoreU(code, DCodes(), codes + i);
    }
  }
  return usual && AllZero(others);
}
// A block of kBlock columns by MxBits, likewise.
HWY_INLINE bool EncodeMxColumns(const uint16_t* x, int64_t stride, CodePair scale, uint8_t* bytes) {
  const VH scales = hn::BitCast(DH(), hn::Or(scale.a, hn::ShiftLeft<16>(scale.b)));
  const auto low = hn::SaturatedSub(hn::Set(DH(), MxBits::kFirst), scales);
  const auto high = hn::SaturatedSub(scales, hn::Set(DH(), MxBits::kLast));
  VH others = hn::Or(low, high);
  if (!AllZero(others)) return false;
  const MxBits bits(scales);
  for (int64_t r = 0; r < Mx::kSize; ++r) {
    const auto code = bits.Encode(hn::LoadU(DH(), x + r * stride), others);
    hn::StoreU(hn::TruncateTo(DCodes(), code), DCodes(), bytes + r * kUnit);
  }
  return AllZero(others);
}

// Rows with blocks along them.
template <bool kStochastic, typename Kind, typename T>
HWY_NOINLINE void QuantizeRows(const Tile<T>& tile, const Side& side, const Kind& kind) {
  constexpr Format kFormat = Kind::kFormat;
  constexpr int64_t kSize = Kind::kSize;
  constexpr int64_t kPerByte = kFormat == Format::kE2M1 ? 2 : 1;
  const int64_t n = tile.whole_cols();
  const int64_t blocks = n / kSize;
  const int64_t blocks_there = (tile.cols + kSize - 1) / kSize;
  const bool whole = blocks_there == blocks;
  alignas(64) float own[kTileRows * kTileCols / kSize];
  alignas(64) uint8_t own_codes[kTileRows * kTileCols / kSize];
  if constexpr (!Kind::kShared) {
    for (int64_t r = 0; r < tile.rows; ++r) BlockAmaxes<kSize>(tile.Row(r), n, own + r * blocks);
    BlockScales(kind, tile.rows * blocks, own, own_codes);
  }
  for (int64_t r = 0; r < tile.rows; ++r) {
    tile.FetchNext(r);
    const float* values = own + r * blocks;
    const uint8_t* scale_codes = own_codes + r * blocks;
    if constexpr (Kind::kShared) {
      values = kind.scales.divisors[r / kSize];
      scale_codes = kind.scales.codes[r / kSize];
    }
    uint8_t* scales = side.scales.At(tile.row + r, tile.col / kSize);
    for (int64_t b = 0; b < blocks_there; ++b) scales[b] = scale_codes[b];

    const auto scaled = [&](int64_t i, Pair v) HWY_ATTR {
      const VF scale = ScaleOf<kSize>(values, i);
      return Kind::Scaled(v, {scale, scale});
    };
    const auto draw = [&](int64_t i) HWY_ATTR {
      if constexpr (kStochastic) {
        return side.random.RoundingBlocks((tile.row + r) * side.draw_cols + tile.col + i);
      } else {
        return Nearest();
      }
    };
    alignas(64) uint8_t line[kTileCols];
    uint8_t* codes = side.codes.At(tile.row + r, tile.col / kPerByte);
    uint8_t* to = whole ? codes : line;
    const bool stream = whole && side.stream;
    bool done = false;
    if constexpr (kMxBf16<Kind, T> && !kStochastic) done = EncodeMxRow(tile.Row(r), n, scale_codes, to, stream);
    if (!done) EncodeRow<kFormat>(tile.Row(r), n, scaled, draw, to, stream);
    if (!whole) std::memcpy(codes, line, static_cast<size_t>(blocks_there * kSize / kPerByte));
  }
}

// 16 rows of kBlock columns after the Hadamard transform of each column (quantizer.h), in the order of reference.h.
class Transformed {
 public:
  // x: the first of the columns in the first row, bf16.
  HWY_INLINE Transformed(const uint16_t* x, int64_t stride) {
    amax_.a = Transform(
        x, stride, [](hn::Vec<DU> bits) HWY_ATTR { return hn::ShiftLeft<16>(bits); }, 0);
    amax_.b = Transform(
        x, stride, [](hn::Vec<DU> bits) HWY_ATTR { return hn::And(bits, hn::Set(DU(), 0xffff0000U)); }, kLanes);
  }
  HWY_INLINE Pair Row(int64_t i) const { return {hn::Load(DF(), values_[i]), hn::Load(DF(), values_[i] + kLanes)}; }
  // Of each column; a NaN is larger than all numbers.
  HWY_INLINE Pair amax() const { return amax_; }

 private:
  // One half of the Pairs, kept from `at` on.
  template <typename Half>
  HWY_INLINE VF Transform(const uint16_t* x, int64_t stride, const Half& half, int64_t at) {
    VF y[kHadamardSize];
    const auto row = [&](int64_t i) HWY_ATTR {
      return hn::BitCast(DF(), half(hn::BitCast(DU(), hn::LoadU(DH(), x + i * stride))));
    };
    // The signs' products are exact, so that adding them in one operation is adding them.
    HWY_UNROLL(16)
    for (int64_t i = 0; i < kHadamardSize; i += 2) {
      const VF low = hn::Mul(row(i), Splat(kHadamardSigns[i] / 4));
      const VF high = row(i + 1);
      y[i] = hn::MulAdd(high, Splat(kHadamardSigns[i + 1] / 4), low);
      y[i + 1] = hn::NegMulAdd(high, Splat(kHadamardSigns[i + 1] / 4), low);
    }
    HWY_UNROLL(4)
    for (int64_t h = 2; h < kHadamardSize; h *= 2) {
      HWY_UNROLL(16)
      for (int64_t i = 0; i < kHadamardSize; ++i) {
        if ((i & h) != 0) continue;
        const VF low = y[i];
        const VF high = y[i + h];
        y[i] = hn::Add(low, high);
        y[i + h] = hn::Sub(low, high);
      }
    }
    VU max = hn::Zero(DU());
    HWY_UNROLL(16)
    for (int64_t i = 0; i < kHadamardSize; ++i) {
      hn::Store(y[i], DF(), values_[i] + at);
      max = hn::Max(max, hn::And(hn::BitCast(DU(), y[i]), hn::Set(DU(), 0x7fffffffU)));
    }
    return hn::BitCast(DF(), max);
  }

  alignas(64) float values_[kHadamardSize][kBlock];
  Pair amax_;
};

// Codes of 8 rows of kBlock columns into rows of bytes, of E2M1 two in one.
template <Format kFormat>
HWY_INLINE void StoreEight(const CodePair (&code)[8], uint8_t* bytes) {
  if constexpr (kFormat == Format::kE2M1) {
    HWY_UNROLL(4)
    for (int64_t k = 0; k < 4; ++k) {
      const CodePair low = code[2 * k];
      const CodePair high = code[2 * k + 1];
      StoreBytes({Nibbles(low.a, high.a), Nibbles(low.b, high.b)}, bytes + k * kUnit);
    }
  } else {
    HWY_UNROLL(8)
    for (int64_t k = 0; k < 8; ++k) StoreBytes(code[k], bytes + k * kUnit);
  }
}

// The scales of kBlock columns with these amaxes; their codes go to `bytes` too.
struct ColumnScales {
  CodePair codes;
  Pair values;
};
template <typename Kind>
HWY_INLINE ColumnScales StoreScales(const Kind& kind, Pair amax, uint8_t* bytes) {
  const BlockScale a = kind.Scale(amax.a);
  const BlockScale b = kind.Scale(amax.b);
  StoreBytes({a.code, b.code}, bytes);
  return {{a.code, b.code}, {a.value, b.value}};
}

// A block of kSize rows of kBlock columns, whose values are value(0 … kSize - 1).
template <typename Kind, typename Value, typename Draws>
HWY_INLINE void EncodeColumns(Pair scale, const Value& value, const Draws& draws, uint8_t* bytes) {
  constexpr Format kFormat = Kind::kFormat;
  for (int64_t r = 0; r < Kind::kSize; r += 8) {
    const auto draw = draws(r);
    CodePair code[8];
    HWY_UNROLL(8)
    for (int64_t k = 0; k < 8; ++k) code[k] = EncodePair<kFormat>(Kind::Scaled(value(r + k), scale), draw[k]);
    StoreEight<kFormat>(code, bytes + r * kUnit / (kFormat == Format::kE2M1 ? 2 : 1));
  }
}

// Columns with blocks along them.
template <bool kStochastic, bool kHadamard, typename Kind, typename T>
HWY_NOINLINE void QuantizeColumns(const Tile<T>& tile, const Side& side, const Kind& kind) {
  constexpr int64_t kSize = Kind::kSize;
  constexpr int64_t kPerByte = Kind::kFormat == Format::kE2M1 ? 2 : 1;
  alignas(64) uint8_t bytes[kTileRows / kPerByte * kUnit];
  alignas(64) uint8_t scales[kTileRows / kSize * kUnit];
  const int64_t groups = (tile.rows + kSize - 1) / kSize;
  for (int64_t first = 0; first < tile.cols; first += kUnit) {
    for (int64_t col = 0; col < kUnit; col += kBlock) {
      for (int64_t g = 0; g < groups; ++g) {
        const T* x = tile.Row(g * kSize) + first + col;
        constexpr int64_t kFetchRows = kSize * kBlock / kTileCols;  // in each of as many steps as a tile has
        const int64_t fetched = (first + col) * kTileRows / kTileCols + g * kFetchRows;
        for (int64_t r = fetched; r < fetched + kFetchRows; ++r) tile.FetchNext(r);
        uint8_t* scale_bytes = scales + g * kUnit + col;
        const auto draws = [&](int64_t r) HWY_ATTR {
          if constexpr (kStochastic) {
            const int64_t element = (tile.col + first + col) * side.draw_cols + tile.row + g * kSize + r;
            return side.random.RoundingColumns(kColumnwiseDraws + element, side.draw_cols);
          } else {
            return Nearest();
          }
        };
        uint8_t* to = bytes + g * kSize / kPerByte * kUnit + col;
        const auto value = [&](int64_t r) HWY_ATTR { return Load<true>(x + r * tile.stride, Full()); };
        if constexpr (Kind::kShared) {
          for (int64_t c = 0; c < kBlock; ++c) scale_bytes[c] = kind.scales.codes[g][(first + col + c) / kSize];
          const VF divisor = ScaleOf<kSize>(kind.scales.divisors[g], first + col);
          EncodeColumns<Kind>({divisor, divisor}, value, draws, to);
        } else if constexpr (kHadamard) {
          const Transformed transformed(x, tile.stride);
          const auto turned = [&](int64_t r) HWY_ATTR { return transformed.Row(r); };
          EncodeColumns<Kind>(StoreScales(kind, transformed.amax(), scale_bytes).values, turned, draws, to);
        } else {
          Amax<T> amax;
          for (int64_t r = 0; r < kSize; ++r) amax.Add(x + r * tile.stride);
          const ColumnScales scale = StoreScales(kind, amax.Columns(), scale_bytes);
          bool done = false;
          if constexpr (kMxBf16<Kind, T> && !kStochastic) done = EncodeMxColumns(x, tile.stride, scale.codes, to);
          if (!done) EncodeColumns<Kind>(scale.values, value, draws, to);
        }
      }
    }
    const int64_t outer = tile.col + first;
    const int64_t cols = std::min(kUnit, tile.cols - first);
    TransposeBytes(bytes, kUnit, groups * kSize / kPerByte, cols, side.codes.At(outer, tile.row / kPerByte),
                   side.codes.stride, side.stream);
    for (int64_t c = 0; c < cols; ++c) {
      uint8_t* to = side.scales.At(outer + c, tile.row / kSize);
      for (int64_t g = 0; g < groups; ++g) to[g] = scales[g * kUnit + c];
    }
  }
}

// by_row(tile) and by_col(tile), which share the fetching of the next tile.
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

// Both orientations of 16x16 blocks; rows alone where they are rounded stochastically.
template <bool kStochastic, typename T>
HWY_NOINLINE void QuantizeSquares(const Tile<T>& tile, const Side& row, const Side& col, const Nv& nv) {
  SquareScales scales;
  for (int64_t g = 0; g * 16 < tile.rows; ++g) {
    for (int64_t c = 0; c < tile.whole_cols(); c += 16) {
      Amax<T, 16> amax;
      for (int64_t r = 0; r < 16; ++r) amax.Add(tile.Row(g * 16 + r) + c);
      scales.divisors[g][c / 16] = amax.Largest();
    }
    BlockScales(nv, tile.whole_cols() / 16, scales.divisors[g], scales.codes[g]);
  }
  ForSides(
      tile, row, col, [&](const Tile<T>& part) { QuantizeRows<kStochastic>(part, row, Square{scales}); },
      [&](const Tile<T>& part) { QuantizeColumns<false, false>(part, col, Square{scales}); });
}

// One scale for all: the codes of the rows are those of the columns. Returns the tile's amax.
template <Format kFormat, bool kStochastic, typename T>
HWY_NOINLINE float QuantizeWhole(const Tile<T>& tile, const Side& row, const Side& col, float scale) {
  // Codes have a place of their own first where they are read again: transposed, which takes a whole tile of them, or
  // copied past the caches.
  alignas(64) uint8_t own[kTileRows * kTileCols];
  const int64_t n = tile.whole_cols();
  const bool whole = tile.rows % kUnit == 0 && tile.cols == n;
  const bool has_col = col.codes.data != nullptr;
  const bool direct = row.codes.data != nullptr && whole && !(has_col && row.stream);
  const Bytes codes = direct ? Bytes{row.codes.At(tile.row, tile.col), row.codes.stride} : Bytes{own, kTileCols};
  Amax<T> amax;
  for (int64_t r = 0; r < (direct ? tile.rows : tile.whole_rows()); ++r) {
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
    EncodeRow<kFormat>(x, n, scaled, draw, codes.At(r, 0), direct && row.stream);
  }
  if (has_col) {
    for (int64_t c = 0; c < tile.cols; c += kUnit) {
      TransposeBytes(codes.At(0, c), codes.stride, tile.rows, std::min(kUnit, tile.cols - c),
                     col.codes.At(tile.col + c, tile.row), col.codes.stride, col.stream);
    }
  }
  if (row.codes.data != nullptr && !direct) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      CopyBytes(codes.At(r, 0), tile.cols, row.codes.At(tile.row + r, tile.col), row.stream);
    }
  }
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
inline HWY_NOINLINE float TransformedAmaxOf(const Tile<uint16_t>& tile) {
  VU max = hn::Zero(DU());
  for (int64_t row = 0; row < tile.rows; row += kHadamardSize) {
    for (int64_t r = row; r < row + kHadamardSize; ++r) tile.FetchNext(r);
    for (int64_t col = 0; col < tile.cols; col += kBlock) {
      const Pair amax = Transformed(tile.Row(row) + col, tile.stride).amax();
      max = hn::Max(max, hn::Max(hn::BitCast(DU(), amax.a), hn::BitCast(DU(), amax.b)));
    }
  }
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(DU(), max)));
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline
HWY_AFTER_NAMESPACE();
#endif
