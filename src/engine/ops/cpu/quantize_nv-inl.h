// nvfp4: tiles in blocks of 16 along their rows or, perhaps transformed, their columns, and in blocks of 16 by 16.
// Included once for each target, inside of Highway's foreach_target.h.

#include "engine/ops/cpu/simd_targets.h"

#if defined(RIDGELINE_OPS_QUANTIZE_NV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_OPS_QUANTIZE_NV_INL_H_
#undef RIDGELINE_OPS_QUANTIZE_NV_INL_H_
#else
#define RIDGELINE_OPS_QUANTIZE_NV_INL_H_
#endif

#include "engine/ops/cpu/codes_nv-inl.h"
#include "engine/ops/cpu/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

constexpr int64_t kNvSize = 16;
constexpr int64_t kTileGroups = kTileRows / kNvSize;

// The scales of kBlocks blocks, in order.
template <int64_t kBlocks>
struct ScaleTable {
  alignas(64) float divisors[kBlocks];
  alignas(64) float inverses[kBlocks];
  alignas(64) uint8_t codes[kBlocks];

  // Sets `count` scales from their amaxes, from `first` on. There is space for whole vectors.
  HWY_INLINE void Set(const Nv& nv, const float* amaxes, int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; i += kLanes) {
      const NvScales scales = nv.Scales(hn::LoadU(DF(), amaxes + i - first));
      hn::StoreU(scales.divisor, DF(), divisors + i);
      hn::StoreU(scales.inverse, DF(), inverses + i);
      hn::StoreU(hn::TruncateTo(DB(), scales.code), DB(), codes + i);
    }
  }
  HWY_INLINE NvRow Row(int64_t first, int64_t count) const {
    VF least = hn::LoadU(DF(), inverses + first);
    for (int64_t i = kLanes; i < count; i += kLanes) least = hn::Min(least, hn::LoadU(DF(), inverses + first + i));
    const auto some = hn::FirstN(DF(), static_cast<size_t>(count));
    const bool usual = hn::AllTrue(DF(), hn::Or(hn::Not(some), hn::Gt(least, Splat(0))));
    return {divisors + first, inverses + first, usual};
  }
};

// Encodes a row of n elements, n whole units. The first has the position `element` in the random stream.
template <bool kUsual, int kDrawBits>
struct NvEncoder {
  const NvRow& scales;
  const RandomBlocks& random;
  int64_t element;
  bool stream;

  template <typename T>
  HWY_INLINE void Encode(const T* x, int64_t n, uint8_t* codes) const {
    const auto scaled = [&](int64_t i, Pair v) HWY_ATTR { return scales.Quotients<kUsual>(i, v); };
    if constexpr (kDrawBits == 9) {
      for (int64_t i = 0; i < n; i += 4 * kBlock) {
        const auto shared = random.SharedBlocks(element + i);
        HWY_UNROLL(4)
        for (int64_t k = 0; k < 4; ++k) {
          const int64_t at = i + k * kBlock;
          if (at >= n) break;
          const auto bytes = EncodeBytes<kUsual>(scaled(at, Load<true>(x + at, Full())), shared.rows[k]);
          StoreVector(DB(), bytes, codes + at / 2, stream);
        }
      }
    } else {
      const auto draw = [&]([[maybe_unused]] int64_t i) HWY_ATTR {
        if constexpr (kDrawBits == 0) {
          return Nearest();
        } else {
          return random.RoundingBlocks(element + i);
        }
      };
      EncodeRow<Format::kE2M1, kUsual>(x, n, scaled, draw, codes, stream);
    }
  }
};
template <int kDrawBits, typename T>
HWY_INLINE void EncodeNvRow(const T* x, int64_t n, const NvRow& scales, const RandomBlocks& random, int64_t element,
                            uint8_t* codes, bool stream) {
  if (kHasUsual && HWY_LIKELY(scales.usual)) {
    NvEncoder<kHasUsual, kDrawBits>{scales, random, element, stream}.Encode(x, n, codes);
  } else {
    NvEncoder<false, kDrawBits>{scales, random, element, stream}.Encode(x, n, codes);
  }
}

// Quantizes rows with blocks along them.
template <bool kStochastic, typename T>
HWY_NOINLINE void QuantizeNvRows(const Tile<T>& tile, const Side& side, const Nv& nv) {
  const int64_t n = tile.whole_cols();
  const int64_t blocks = n / kNvSize;
  const int64_t blocks_there = RoundUp(tile.cols, kNvSize) / kNvSize;
  const bool whole = blocks_there == blocks;
  constexpr int64_t kAtOnce = 4;  // rows that stay in the first-level cache, with blocks enough for whole vectors
  alignas(64) float amaxes[kAtOnce * kTileCols / kNvSize] = {};
  ScaleTable<kAtOnce * kTileCols / kNvSize> scales;
  for (int64_t first = 0; first < tile.rows; first += kAtOnce) {
    const int64_t count = std::min(kAtOnce, tile.rows - first);
    for (int64_t r = 0; r < count; ++r) BlockAmaxes<kNvSize>(tile.Row(first + r), n, amaxes + r * blocks);
    scales.Set(nv, amaxes, 0, count * blocks);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = tile.row + first + r;
      tile.FetchNext(first + r);
      CopyFew(scales.codes + r * blocks, blocks_there, side.scales.At(row, tile.col / kNvSize));
      alignas(64) uint8_t line[kTileCols / 2];
      uint8_t* codes = side.codes.At(row, tile.col / 2);
      EncodeNvRow<kStochastic ? 9 : 0>(tile.Row(first + r), n, scales.Row(r * blocks, blocks), side.random,
                                       row * side.draw_cols + tile.col, whole ? codes : line, whole && side.stream);
      if (!whole) std::memcpy(codes, line, static_cast<size_t>(blocks_there * kNvSize / 2));
    }
  }
}

// A copy of 16 rows of kBlock columns. Rows of a matrix often lie a power of 2 apart, so the first-level cache cannot
// hold their lines at once.
template <typename T>
struct RowsOfBlock {
  alignas(64) T rows[kNvSize][kBlock];

  HWY_INLINE RowsOfBlock(const T* x, int64_t stride) {
    for (int64_t r = 0; r < kNvSize; ++r) std::memcpy(rows[r], x + r * stride, sizeof rows[r]);
  }
};

// Loads 16 rows of a vector of columns: the first half of the kBlock columns of a Pair, or the other. With kHadamard,
// they are transformed, in the order of reference.h.
template <bool kHadamard, bool kOther, typename T>
HWY_INLINE void LoadColumns(const RowsOfBlock<T>& x, VF (&y)[kNvSize]) {
  const auto row = [&](int64_t i) HWY_ATTR {
    const Pair pair = Load<true>(x.rows[i], Full());
    return kOther ? pair.b : pair.a;
  };
  if constexpr (!kHadamard) {
    HWY_UNROLL(16)
    for (int64_t i = 0; i < kNvSize; ++i) y[i] = row(i);
  } else {
    static_assert(kNvSize == kHadamardSize);
    // Products with the signs are exact, so a fused multiply-add equals an addition.
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
  }
}
// Returns the largest magnitudes' bits; a NaN is larger than all numbers.
HWY_INLINE VU AmaxBits(const VF (&y)[kNvSize]) {
  VU max = hn::Zero(DU());
  HWY_UNROLL(16)
  for (const VF& values : y) {
    max = hn::Max(max, hn::And(hn::BitCast(DU(), values), hn::Set(DU(), 0x7fffffffU)));
  }
  return max;
}

// 16 rows of kBlock columns, transformed if wanted, and their scales. All of them are computed before any is encoded,
// because each step depends on the one before and takes long.
struct ColumnBlock {
  alignas(64) float y[2][kNvSize][kLanes];
  alignas(64) float amaxes[2][kLanes];  // later the divisors
  alignas(64) float inverses[2][kLanes];

  template <bool kHadamard, typename T>
  HWY_INLINE void Load(const T* x, int64_t stride) {
    const RowsOfBlock<T> rows(x, stride);
    LoadHalf<kHadamard, false>(rows);
    LoadHalf<kHadamard, true>(rows);
  }
  template <bool kHadamard, bool kOther, typename T>
  HWY_INLINE void LoadHalf(const RowsOfBlock<T>& rows) {
    VF values[kNvSize];
    LoadColumns<kHadamard, kOther>(rows, values);
    HWY_UNROLL(16)
    for (int64_t i = 0; i < kNvSize; ++i) hn::Store(values[i], DF(), y[kOther][i]);
    hn::Store(hn::BitCast(DF(), AmaxBits(values)), DF(), amaxes[kOther]);
  }

  // `codes`: one per column, in order.
  HWY_INLINE void Scale(const Nv& nv, uint8_t* codes) {
    const NvScales a = nv.Scales(hn::Load(DF(), amaxes[0]));
    const NvScales b = nv.Scales(hn::Load(DF(), amaxes[1]));
    StoreBytes({a.code, b.code}, codes);
    hn::Store(a.divisor, DF(), amaxes[0]);
    hn::Store(b.divisor, DF(), amaxes[1]);
    hn::Store(a.inverse, DF(), inverses[0]);
    hn::Store(b.inverse, DF(), inverses[1]);
  }

  // Writes 8 bytes of codes for each column, half by half.
  template <bool kStochastic>
  HWY_INLINE void Encode(const RandomBlocks::ColumnWords& random, uint64_t* words) const {
    if constexpr (kHasUsual) {
      const auto least = hn::Min(hn::Load(DF(), inverses[0]), hn::Load(DF(), inverses[1]));
      if (HWY_LIKELY(hn::AllTrue(DF(), hn::Gt(least, Splat(0))))) {
        EncodeHalf<true, kStochastic, 0>(random, words);
        EncodeHalf<true, kStochastic, 1>(random, words + kLanes);
        return;
      }
    }
    EncodeHalf<false, kStochastic, 0>(random, words);
    EncodeHalf<false, kStochastic, 1>(random, words + kLanes);
  }
  template <bool kUsual, bool kStochastic, int kHalf>
  HWY_INLINE void EncodeHalf(const RandomBlocks::ColumnWords& random, uint64_t* words) const {
    const VF divisor = hn::Load(DF(), amaxes[kHalf]);
    const VF inverse = hn::Load(DF(), inverses[kHalf]);
    VF values[kNvSize];
    HWY_UNROLL(16)
    for (int64_t i = 0; i < kNvSize; ++i) {
      values[i] = Quotient<kUsual>(hn::Load(DF(), y[kHalf][i]), divisor, inverse);
    }
    ColumnCodes codes;
    if constexpr (kStochastic) {
      const auto four = [&](int64_t k) HWY_ATTR { return kHalf == 0 ? random.rows[k].a : random.rows[k].b; };
      codes = EncodeColumns<kUsual>(values, {four(0), four(1), four(2), four(3)});
    } else {
      codes = EncodeColumns<kUsual>(values);
    }
    hn::StoreInterleaved2(codes.low, codes.high, DU(), reinterpret_cast<uint32_t*>(words));
  }
};

// The codes of kUnit columns of a tile before they are transposed. A word has 16 codes of a column. In each group of
// kBlock columns, the even ones come first.
struct ColumnUnit {
  alignas(64) uint64_t words[kTileGroups][kUnit];
  alignas(64) uint8_t scales[16][kUnit];  // as many as Transpose16 reads

  static constexpr int64_t ColumnAt(int64_t place) {
    const int64_t lane = place % kBlock;
    return place - lane + (lane < kLanes ? 2 * lane : 2 * (lane - kLanes) + 1);
  }

  // Stores the first `cols` columns of `groups` words each, as rows of `side` from `outer` on.
  HWY_INLINE void Store(const Side& side, int64_t outer, int64_t row, int64_t cols, int64_t groups) const {
    const hn::FixedTag<uint64_t, 2> d;
    alignas(64) uint8_t lines[kUnit * kLineBytes];
    for (int64_t place = 0; place < kUnit; place += 2) {
      auto* line = reinterpret_cast<uint64_t*>(lines + place * kLineBytes);
      HWY_UNROLL(4)
      for (int64_t g = 0; g < kTileGroups; g += 2) {
        const auto even = hn::Load(d, words[g] + place);
        const auto odd = hn::Load(d, words[g + 1] + place);
        hn::Store(hn::InterleaveLower(d, even, odd), d, line + g);
        hn::Store(hn::InterleaveUpper(d, even, odd), d, line + kTileGroups + g);
      }
    }
    for (int64_t place = 0; place < kUnit; ++place) {
      const int64_t c = ColumnAt(place);
      if (c >= cols) continue;
      CopyBytes(lines + place * kLineBytes, groups * 8, side.codes.At(outer + c, row / 2), side.stream);
    }
    Transpose16(scales[0], kUnit, lines);
    for (int64_t c = 0; c < cols; ++c) {
      CopyFew(lines + c * kLineBytes, groups, side.scales.At(outer + c, row / kNvSize));
    }
  }
};
static_assert(kTileGroups * sizeof(uint64_t) == kLineBytes);

// Quantizes columns with blocks along them.
template <bool kStochastic, bool kHadamard, typename T>
HWY_NOINLINE void QuantizeNvColumns(const Tile<T>& tile, const Side& side, const Nv& nv) {
  ColumnUnit unit = {};
  ColumnBlock blocks[kTileGroups];
  const int64_t groups = RoundUp(tile.rows, kNvSize) / kNvSize;
  for (int64_t first = 0; first < tile.cols; first += kUnit) {
    for (int64_t col = 0; col < kUnit; col += kBlock) {
      for (int64_t g = 0; g < groups; ++g) {
        tile.FetchNextPart((first + col) / kBlock * kTileGroups + g, kTileCols / kBlock * kTileGroups);
        blocks[g].template Load<kHadamard>(tile.Row(g * kNvSize) + first + col, tile.stride);
      }
      for (int64_t g = 0; g < groups; ++g) blocks[g].Scale(nv, unit.scales[g] + col);
      for (int64_t g = 0; g < groups; ++g) {
        RandomBlocks::ColumnWords random;
        if constexpr (kStochastic) {
          const int64_t element = (tile.col + first + col) * side.draw_cols + tile.row + g * kNvSize;
          random = side.random.WordsOfColumns((kColumnwiseDraws + element) / 16, side.draw_cols / 16);
        }
        blocks[g].template Encode<kStochastic>(random, unit.words[g] + col);
      }
    }
    unit.Store(side, tile.col + first, tile.row, std::min(kUnit, tile.cols - first), groups);
  }
}

// Quantizes 16x16 blocks in both orientations; columns have the codes of rows. With stochastic rounding, only rows.
template <bool kStochastic, typename T>
HWY_NOINLINE void QuantizeSquares(const Tile<T>& tile, const Side& row, const Side& col, const Nv& nv) {
  constexpr int64_t kAcross = kTileCols / kNvSize;
  const int64_t n = tile.whole_cols();
  const int64_t groups = RoundUp(tile.rows, kNvSize) / kNvSize;
  ScaleTable<kTileGroups * kAcross> scales;
  for (int64_t g = 0; g < groups; ++g) {
    alignas(64) float amaxes[kAcross] = {};
    for (int64_t c = 0; c < n; c += kNvSize) {
      Amax<T, kNvSize> amax;
      for (int64_t r = 0; r < kNvSize; ++r) amax.Add(tile.Row(g * kNvSize + r) + c);
      amaxes[c / kNvSize] = amax.Largest();
    }
    scales.Set(nv, amaxes, g * kAcross, kAcross);
  }
  alignas(64) uint8_t own[kTileRows * kTileCols / 2];
  const RowCodes codes(tile, row, col, 2, own);
  for (int64_t r = 0; r < codes.rows(); ++r) {
    tile.FetchNext(r);
    EncodeNvRow<kStochastic ? 16 : 0>(tile.Row(r), n, scales.Row(r / kNvSize * kAcross, n / kNvSize), row.random,
                                      (tile.row + r) * row.draw_cols + tile.col, codes.At(r), codes.streams());
  }
  if (col.codes.data != nullptr) {
    alignas(64) uint8_t pairs[kTileRows / 2 * kTileCols];
    for (int64_t r = 0; r < groups * kNvSize / 2; ++r) {
      PairNibbles(codes.At(2 * r), codes.At(2 * r + 1), n / 2, pairs + r * kTileCols);
    }
    for (int64_t c = 0; c < tile.cols; c += kUnit) {
      TransposeBytes(pairs + c, kTileCols, groups * kNvSize / 2, std::min(kUnit, tile.cols - c),
                     col.codes.At(tile.col + c, tile.row / 2), col.codes.stride, col.stream);
    }
    for (int64_t c = 0; c < tile.cols; ++c) {
      uint8_t* to = col.scales.At(tile.col + c, tile.row / kNvSize);
      for (int64_t g = 0; g < groups; ++g) to[g] = scales.codes[g * kAcross + c / kNvSize];
    }
  }
  if (row.codes.data == nullptr) return;
  const int64_t blocks = RoundUp(tile.cols, kNvSize) / kNvSize;
  codes.Store(blocks * kNvSize / 2);
  for (int64_t r = 0; r < tile.rows; ++r) {
    CopyFew(scales.codes + r / kNvSize * kAcross, blocks, row.scales.At(tile.row + r, tile.col / kNvSize));
  }
}

// The amaxes of a tile as it is, if `plain`, and transformed.
struct BothAmaxes {
  float plain = 0;
  float transformed = 0;
};
inline HWY_NOINLINE BothAmaxes BothAmaxesOf(const Tile<uint16_t>& tile, bool plain) {
  Amax<uint16_t> amax;
  VU max = hn::Zero(DU());
  for (int64_t row = 0; row < tile.rows; row += kHadamardSize) {
    for (int64_t r = row; r < row + kHadamardSize; ++r) tile.FetchNext(r);
    for (int64_t col = 0; col < tile.cols; col += kBlock) {
      const RowsOfBlock<uint16_t> x(tile.Row(row) + col, tile.stride);
      VF y[kNvSize];
      LoadColumns<true, false>(x, y);
      max = hn::Max(max, AmaxBits(y));
      LoadColumns<true, true>(x, y);
      max = hn::Max(max, AmaxBits(y));
      if (!plain) continue;
      for (const auto* values : x.rows) amax.Add(values);
    }
  }
  return {amax.Largest(), std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(DU(), max)))};
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();
#endif
