// Tiles of x: their rows, and transposed their columns, 32 at a time in as many lanes. Tiles are independent of each
// other but for the amaxes of the whole of x, which take a pass of their own.
#include <cmath>
#include <cstring>

#include "engine/ops/attrs.h"
#include "engine/ops/quantize.h"
#include "engine/ops/quantized_rows.h"
#include "engine/ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/quantize_cpu.cc"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include "engine/ops/codes-inl.h"
#include "engine/ops/transpose-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ridgeline {
namespace HWY_NAMESPACE {

constexpr int64_t kTileRows = kQuantizeTileRows;
constexpr int64_t kTileCols = kQuantizeTileCols;
constexpr int64_t kUnit = 32;  // a multiple of every block of elements, and of kBlock
static_assert(kUnit % kBlock == 0 && kTileRows % kUnit == 0 && kTileCols % kUnit == 0);
constexpr int64_t RoundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// A part of x, and where it lies in it.
template <typename T>
struct Tile {
  const T* x;
  int64_t stride;
  int64_t row, rows;
  int64_t col, cols;

  const T* Row(int64_t r) const { return x + r * stride; }
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
  int64_t padded_inner = 0;
  bool stream = false;  // codes past the caches
  RandomBlocks random;
};

// The scales of a tile's 16x16 blocks.
struct SquareScales {
  alignas(64) float divisors[kTileRows / 16][kTileCols / 16];
  uint8_t codes[kTileRows / 16][kTileCols / 16];
};

// What scales a block has, and what is done with them. kShared: they are there already, shared by 16 rows and columns;
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

template <Format kFormat, typename T, typename Scaled, typename Draw>
HWY_INLINE void EncodeRow(const T* x, int64_t n, const Scaled& scaled, const Draw& draw, uint8_t* codes) {
  for (int64_t i = 0; i < n; i += kBlock) {
    const Pair value = scaled(i, Load<true>(x + i, Full()));
    StoreCodes<kFormat>(EncodePair<kFormat>(value, draw(i)), codes + i / kBlock * kCodeBytes<kFormat>);
  }
}

// fn(row, x, n, codes, scales) for each row of a tile, n its elements rounded up to whole units, where codes and scales
// of the tile's first element are at the beginning of the given ones. The last columns of x, where they are not whole,
// are copied in front of zeros, and their codes and scales copied back.
template <Format kFormat, int64_t kSize, typename T, typename Fn>
HWY_INLINE void ForTileRows(const Tile<T>& tile, const Bytes& codes, const Bytes& scales, const Fn& fn) {
  constexpr int64_t kPerByte = kFormat == Format::kE2M1 ? 2 : 1;
  const int64_t n = RoundUp(tile.cols, kUnit);
  for (int64_t r = 0; r < tile.rows; ++r) {
    uint8_t* code_row = codes.At(r, 0);
    uint8_t* scale_row = kSize == 1 ? nullptr : scales.At(r, 0);
    if (n == tile.cols) {
      fn(r, tile.Row(r), n, code_row, scale_row);
    } else {
      alignas(64) T x[kTileCols] = {};
      alignas(64) uint8_t whole_codes[kTileCols];
      alignas(64) uint8_t whole_scales[kTileCols];
      std::memcpy(x, tile.Row(r), static_cast<size_t>(tile.cols) * sizeof(T));
      fn(r, static_cast<const T*>(x), n, static_cast<uint8_t*>(whole_codes), static_cast<uint8_t*>(whole_scales));
      const int64_t valid = RoundUp(tile.cols, kSize);
      std::memcpy(code_row, whole_codes, static_cast<size_t>(valid / kPerByte));
      if (kSize > 1) std::memcpy(scale_row, whole_scales, static_cast<size_t>(valid / kSize));
    }
  }
}

// The scales of blocks with these amaxes, at most 16 of them: their codes, and what is done to elements.
constexpr int64_t kMaxBlocks = kTileCols / 16;
template <typename Kind>
HWY_INLINE void BlockScales(const Kind& kind, const float* amaxes, int64_t blocks, uint8_t* codes, float* values) {
  alignas(64) uint8_t all[kMaxBlocks];
  for (int64_t i = 0; i < blocks; i += kLanes) {
    const BlockScale scale = kind.Scale(hn::Load(DF(), amaxes + i));
    hn::Store(scale.value, DF(), values + i);
    hn::StoreU(hn::TruncateTo(DB(), scale.code), DB(), all + i);
  }
  std::memcpy(codes, all, static_cast<size_t>(blocks));
}

// Rows with blocks along them.
template <bool kStochastic, typename Kind, typename T>
HWY_NOINLINE void QuantizeRows(const Tile<T>& tile, const Side& side, const Kind& kind) {
  constexpr Format kFormat = Kind::kFormat;
  constexpr int64_t kSize = Kind::kSize;
  constexpr int64_t kPerByte = kFormat == Format::kE2M1 ? 2 : 1;
  const auto row = [&](int64_t r, const T* x, int64_t n, uint8_t* codes, uint8_t* scales) HWY_ATTR {
    const int64_t blocks = n / kSize;
    alignas(64) float own[kMaxBlocks];
    const float* values = own;
    if constexpr (Kind::kShared) {
      values = kind.scales.divisors[r / kSize];
      std::memcpy(scales, kind.scales.codes[r / kSize], static_cast<size_t>(blocks));
    } else {
      alignas(64) float amaxes[kMaxBlocks] = {};
      for (int64_t b = 0; b < blocks; ++b) {
        Amax<T, kSize> amax;
        amax.Add(x + b * kSize);
        amaxes[b] = amax.Largest();
      }
      BlockScales(kind, amaxes, blocks, scales, own);
    }
    const auto scaled = [&](int64_t i, Pair v) HWY_ATTR {
      const VF scale = ScaleOf<kSize>(values, i);
      return Kind::Scaled(v, {scale, scale});
    };
    const int64_t element = (tile.row + r) * side.padded_inner + tile.col;
    const auto draw = [&](int64_t i) HWY_ATTR {
      if constexpr (kStochastic) {
        return side.random.Block<true>(element + i);
      } else {
        return Nearest();
      }
    };
    EncodeRow<kFormat>(x, n, scaled, draw, codes);
  };
  ForTileRows<kFormat, kSize>(tile, {side.codes.At(tile.row, tile.col / kPerByte), side.codes.stride},
                              {side.scales.At(tile.row, tile.col / kSize), side.scales.stride}, row);
}

// kUnit columns of a tile, with zeros beyond x's last row and column.
template <typename T>
class Strip {
 public:
  HWY_INLINE Strip(const Tile<T>& tile, int64_t col) : x_(tile.x + col), stride_(tile.stride) {
    const int64_t cols = std::min(kUnit, tile.cols - col);
    if (cols == kUnit && tile.rows % kUnit == 0) return;
    std::memset(copy_, 0, sizeof copy_);
    for (int64_t r = 0; r < tile.rows; ++r)
      std::memcpy(copy_ + r * kUnit, Row(r), static_cast<size_t>(cols) * sizeof(T));
    x_ = copy_;
    stride_ = kUnit;
  }
  Strip(const Strip&) = delete;
  Strip& operator=(const Strip&) = delete;
  HWY_INLINE const T* Row(int64_t row) const { return x_ + row * stride_; }

 private:
  const T* x_;
  int64_t stride_;
  alignas(64) T copy_[kTileRows * kUnit];
};

// 16 rows of kBlock columns after the Hadamard transform of each column (quantizer.h), in the order of reference.h.
class Transformed {
 public:
  template <typename T>
  HWY_INLINE Transformed(const Strip<T>& strip, int64_t first, int64_t col) {
    VF y[kHadamardSize];
    HWY_UNROLL(16)
    for (int64_t i = 0; i < kHadamardSize; ++i) {
      const Pair row = Load<true>(strip.Row(first + i) + col, Full());
      y[i] = row.a;
      hn::Store(row.b, DF(), values_[i] + kLanes);
    }
    amax_.a = Transform(y, 0);
    HWY_UNROLL(16)
    for (int64_t i = 0; i < kHadamardSize; ++i) y[i] = hn::Load(DF(), values_[i] + kLanes);
    amax_.b = Transform(y, kLanes);
  }
  HWY_INLINE Pair Row(int64_t i) const { return {hn::Load(DF(), values_[i]), hn::Load(DF(), values_[i] + kLanes)}; }
  // Of each column; a NaN is larger than all numbers.
  HWY_INLINE Pair amax() const { return amax_; }

 private:
  HWY_INLINE VF Transform(VF (&y)[kHadamardSize], int64_t at) {
    HWY_UNROLL(16)
    for (int64_t i = 0; i < kHadamardSize; ++i) {
      if (kHadamardSigns[i] < 0) y[i] = hn::Neg(y[i]);
    }
    HWY_UNROLL(4)
    for (int64_t h = 1; h < kHadamardSize; h *= 2) {
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
      const VF value = hn::Mul(y[i], Splat(0.25F));
      hn::Store(value, DF(), values_[i] + at);
      max = hn::Max(max, hn::And(hn::BitCast(DU(), value), hn::Set(DU(), 0x7fffffffU)));
    }
    return hn::BitCast(DF(), max);
  }

  alignas(64) float values_[kHadamardSize][kBlock];
  Pair amax_;
};

// Codes of 4 rows of kBlock columns: of E2M1 two rows in a row of bytes.
template <Format kFormat>
HWY_INLINE void StoreFour(const CodePair (&code)[4], uint8_t* bytes) {
  if constexpr (kFormat == Format::kE2M1) {
    for (int64_t k = 0; k < 2; ++k) {
      const CodePair low = code[2 * k];
      const CodePair high = code[2 * k + 1];
      StoreBytes({hn::Or(low.a, hn::ShiftLeft<4>(high.a)), hn::Or(low.b, hn::ShiftLeft<4>(high.b))}, bytes + k * kUnit);
    }
  } else {
    for (int64_t k = 0; k < 4; ++k) StoreBytes(code[k], bytes + k * kUnit);
  }
}

// A block of kSize rows of kBlock columns, whose values are value(0 … kSize - 1).
template <typename Kind, typename Value, typename Draws>
HWY_INLINE void EncodeColumns(Pair scale, const Value& value, const Draws& draws, uint8_t* bytes) {
  constexpr Format kFormat = Kind::kFormat;
  for (int64_t r = 0; r < Kind::kSize; r += 4) {
    const auto draw = draws(r);
    CodePair code[4];
    HWY_UNROLL(4)
    for (int64_t k = 0; k < 4; ++k) code[k] = EncodePair<kFormat>(Kind::Scaled(value(r + k), scale), draw[k]);
    StoreFour<kFormat>(code, bytes + r * kUnit / (kFormat == Format::kE2M1 ? 2 : 1));
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
    const Strip<T> strip(tile, first);
    for (int64_t col = 0; col < kUnit; col += kBlock) {
      for (int64_t g = 0; g < groups; ++g) {
        const auto scale = [&](Pair amax) HWY_ATTR -> Pair {
          if constexpr (Kind::kShared) {
            for (int64_t c = col; c < col + kBlock; ++c)
              scales[g * kUnit + c] = kind.scales.codes[g][(first + c) / kSize];
            const VF divisor = ScaleOf<kSize>(kind.scales.divisors[g], first + col);
            return {divisor, divisor};
          } else {
            const BlockScale a = kind.Scale(amax.a);
            const BlockScale b = kind.Scale(amax.b);
            StoreBytes({a.code, b.code}, scales + g * kUnit + col);
            return {a.value, b.value};
          }
        };
        const auto draws = [&](int64_t r) HWY_ATTR {
          if constexpr (kStochastic) {
            const int64_t element = (tile.col + first + col) * side.padded_inner + tile.row + g * kSize + r;
            return side.random.Columns(kColumnwiseDraws + element, side.padded_inner);
          } else {
            return Nearest();
          }
        };
        uint8_t* to = bytes + g * kSize / kPerByte * kUnit + col;
        if constexpr (kHadamard) {
          const Transformed transformed(strip, g * kSize, col);
          EncodeColumns<Kind>(
              scale(transformed.amax()), [&](int64_t r) HWY_ATTR { return transformed.Row(r); }, draws, to);
        } else {
          Amax<T> amax;
          if constexpr (!Kind::kShared) {
            for (int64_t r = 0; r < kSize; ++r) amax.Add(strip.Row(g * kSize + r) + col);
          }
          const auto value = [&](int64_t r) HWY_ATTR { return Load<true>(strip.Row(g * kSize + r) + col, Full()); };
          EncodeColumns<Kind>(scale(amax.Columns()), value, draws, to);
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

// One scale for all: the codes of the rows are those of the columns. Returns the tile's amax.
template <Format kFormat, typename T>
HWY_NOINLINE float QuantizeWhole(const Tile<T>& tile, const Side& row, const Side& col, float scale) {
  alignas(64) uint8_t own[kTileRows * kTileCols];
  // What is transposed must be whole: 16 rows and 32 columns at a time.
  const bool whole = tile.rows % 16 == 0 && tile.cols % kUnit == 0;
  const bool direct = row.codes.data != nullptr && (whole || col.codes.data == nullptr);
  const Bytes codes = direct ? Bytes{row.codes.At(tile.row, tile.col), row.codes.stride} : Bytes{own, kTileCols};
  Amax<T> amax;
  ForTileRows<kFormat, 1>(tile, codes, {}, [&](int64_t /*r*/, const T* x, int64_t n, uint8_t* to, uint8_t*) HWY_ATTR {
    const auto scaled = [&](int64_t i, Pair v) HWY_ATTR {
      amax.Add(x + i);
      return Times(v, SplatPair(scale));
    };
    EncodeRow<kFormat>(
        x, n, scaled, [](int64_t) { return Nearest(); }, to);
  });
  if (col.codes.data != nullptr) {
    for (int64_t c = 0; c < tile.cols; c += kUnit) {
      TransposeBytes(codes.At(0, c), codes.stride, tile.rows, std::min(kUnit, tile.cols - c),
                     col.codes.At(tile.col + c, tile.row), col.codes.stride, col.stream);
    }
  }
  if (row.codes.data != nullptr && !direct) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      std::memcpy(row.codes.At(tile.row + r, tile.col), codes.At(r, 0), static_cast<size_t>(tile.cols));
    }
  }
  return amax.Largest();
}

// Both orientations of 16x16 blocks.
template <typename T>
HWY_NOINLINE void QuantizeSquares(const Tile<T>& tile, const Side& row, const Side& col, const Nv& nv) {
  SquareScales scales;
  for (int64_t first = 0; first < tile.cols; first += kUnit) {
    const Strip<T> strip(tile, first);
    for (int64_t g = 0; g * 16 < tile.rows; ++g) {
      for (int64_t c = 0; c < kUnit; c += 16) {
        Amax<T, 16> amax;
        for (int64_t r = 0; r < 16; ++r) amax.Add(strip.Row(g * 16 + r) + c);
        scales.divisors[g][(first + c) / 16] = amax.Largest();
      }
    }
  }
  for (int64_t g = 0; g * 16 < tile.rows; ++g) {
    BlockScales(nv, scales.divisors[g], RoundUp(tile.cols, kUnit) / 16, scales.codes[g], scales.divisors[g]);
  }
  if (row.codes.data != nullptr) QuantizeRows<false>(tile, row, Square{scales});
  if (col.codes.data != nullptr) QuantizeColumns<false, false>(tile, col, Square{scales});
}

template <typename T>
HWY_NOINLINE float AmaxOf(const Tile<T>& tile) {
  Amax<T> amax;
  for (int64_t r = 0; r < tile.rows; ++r) {
    const T* x = tile.Row(r);
    int64_t i = 0;
    for (; i + kBlock <= tile.cols; i += kBlock) amax.Add(x + i);
    if (i < tile.cols) {
      alignas(64) T rest[kBlock] = {};
      std::memcpy(rest, x + i, static_cast<size_t>(tile.cols - i) * sizeof(T));
      amax.Add(rest);
    }
  }
  return amax.Largest();
}
template <typename T>
HWY_NOINLINE float TransformedAmaxOf(const Tile<T>& tile) {
  VU max = hn::Zero(DU());
  for (int64_t first = 0; first < tile.cols; first += kUnit) {
    const Strip<T> strip(tile, first);
    for (int64_t col = 0; col < kUnit; col += kBlock) {
      for (int64_t row = 0; row < tile.rows; row += kHadamardSize) {
        const Pair amax = Transformed(strip, row, col).amax();
        max = hn::Max(max, hn::Max(hn::BitCast(DU(), amax.a), hn::BitCast(DU(), amax.b)));
      }
    }
  }
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(DU(), max)));
}

// One recorded call.
template <typename T>
class Quantization {
 public:
  Quantization(const OpCall& call, const CpuRun& run)
      : call_(call),
        run_(run),
        attrs_(call.attrs<QuantizeAttrs>()),
        x_(call.args[0]),
        row_(SideAt(1, x_.cols)),
        col_(SideAt(4, x_.rows)) {}

  void Run() {
    switch (scaling()) {
      case Scaling::kDelayed: {
        const float scale = *Scalar(7);
        SetTensorScale(scale);
        ForTiles([&](const Tile<T>& tile, int64_t i) { amaxes()[i] = Whole(tile, scale); });
        *Scalar(8) = LargerAmax(*Scalar(8), LargestOf(amaxes()));
        return;
      }
      case Scaling::kCurrent: {
        ForTiles([&](const Tile<T>& tile, int64_t i) { amaxes()[i] = AmaxOf(tile); });
        const float scale = TensorScale(InfoOf(any().format).max, LargestOf(amaxes()), 1);
        SetTensorScale(scale);
        return ForTiles([&](const Tile<T>& tile, int64_t /*i*/) { Whole(tile, scale); });
      }
      case Scaling::kBlock32:
        return ForTiles([&](const Tile<T>& tile, int64_t /*i*/) {
          if (has_row()) QuantizeRows<false>(tile, row_, Mx{attrs_.row.scale_rule});
          if (has_col()) QuantizeColumns<false, false>(tile, col_, Mx{attrs_.col.scale_rule});
        });
      case Scaling::kBlock16:
      case Scaling::kBlock16x16:
        return RunNv();
    }
  }

 private:
  bool has_row() const { return row_.codes.data != nullptr; }
  bool has_col() const { return col_.codes.data != nullptr; }
  const Quantizer& any() const { return has_row() ? attrs_.row : attrs_.col; }
  Scaling scaling() const { return any().scaling; }
  float* Scalar(size_t arg) const { return run_.Data<float>(call_.args[arg]); }
  // Of tiles as they are, and transformed.
  float* amaxes() const { return run_.Data<float>(call_.args[9]); }
  float* transformed_amaxes() const { return amaxes() + call_.args[9].cols; }
  float LargestOf(const float* amaxes) const {
    float largest = 0;
    for (int64_t i = 0; i < call_.args[9].cols; ++i) largest = LargerAmax(largest, amaxes[i]);
    return largest;
  }

  Side SideAt(size_t first_arg, int64_t inner) const {
    const Tensor& codes = call_.args[first_arg];
    const Tensor& scales = call_.args[first_arg + 1];
    const Quantizer& quantizer = first_arg == 1 ? attrs_.row : attrs_.col;
    Side side = {{}, {}, quantizer.PaddedInner(inner), false, RandomBlocks(run_.inputs, attrs_.stream)};
    if (!codes.defined()) return side;
    side.codes = {run_.Data<uint8_t>(codes), codes.row_stride};
    if (scales.defined()) side.scales = {run_.Data<uint8_t>(scales), scales.row_stride};
    side.stream = Streams(run_, codes);
    return side;
  }

  void SetTensorScale(float scale) {
    if (has_row()) *Scalar(3) = 1 / scale;
    if (has_col()) *Scalar(6) = 1 / scale;
  }

  float Whole(const Tile<T>& tile, float scale) const {
    return any().format == Format::kE4M3 ? QuantizeWhole<Format::kE4M3>(tile, row_, col_, scale)
                                         : QuantizeWhole<Format::kE5M2>(tile, row_, col_, scale);
  }

  void RunNv() {
    const bool transforms = has_col() && attrs_.col.hadamard;
    ForTiles([&](const Tile<T>& tile, int64_t i) {
      if (has_row() || !transforms) amaxes()[i] = AmaxOf(tile);
      if (transforms) transformed_amaxes()[i] = TransformedAmaxOf(tile);
    });
    Nv by_row = {};
    Nv by_col = {};
    if (has_row()) {
      by_row.encode_scale = TensorScale(kNvfp4Max, LargestOf(amaxes()), 1);
      by_row.tensor_scale = *Scalar(3) = 1 / by_row.encode_scale;
    }
    if (has_col()) {
      by_col.encode_scale = TensorScale(kNvfp4Max, LargestOf(transforms ? transformed_amaxes() : amaxes()), 1);
      by_col.tensor_scale = *Scalar(6) = 1 / by_col.encode_scale;
    }
    if (scaling() == Scaling::kBlock16x16) {
      return ForTiles(
          [&](const Tile<T>& tile, int64_t /*i*/) { QuantizeSquares(tile, row_, col_, has_row() ? by_row : by_col); });
    }
    const bool stochastic_row = attrs_.row.rounding == Rounding::kStochastic;
    const bool stochastic_col = attrs_.col.rounding == Rounding::kStochastic;
    const auto rows = stochastic_row ? QuantizeRows<true, Nv, T> : QuantizeRows<false, Nv, T>;
    auto cols = stochastic_col ? QuantizeColumns<true, false, Nv, T> : QuantizeColumns<false, false, Nv, T>;
    if (transforms) cols = stochastic_col ? QuantizeColumns<true, true, Nv, T> : QuantizeColumns<false, true, Nv, T>;
    ForTiles([&](const Tile<T>& tile, int64_t /*i*/) {
      if (has_row()) rows(tile, row_, by_row);
      if (has_col()) cols(tile, col_, by_col);
    });
  }

  // fn(tile, its index): those of a row of tiles one after another.
  template <typename Fn>
  void ForTiles(const Fn& fn) const {
    const int64_t across = (x_.cols + kTileCols - 1) / kTileCols;
    ParallelFor(QuantizeTiles(x_.rows, x_.cols), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / across * kTileRows;
        const int64_t col = i % across * kTileCols;
        fn(Tile<T>{run_.Data<T>(x_) + row * x_.row_stride + col, x_.row_stride, row, std::min(kTileRows, x_.rows - row),
                   col, std::min(kTileCols, x_.cols - col)},
           i);
      }
      if (row_.stream || col_.stream) hwy::FlushStream();
    });
  }

  const OpCall& call_;
  const CpuRun& run_;
  const QuantizeAttrs& attrs_;
  const Tensor& x_;
  Side row_;
  Side col_;
};

void QuantizeCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  WithType(call.args[0].dtype, [&](auto t) { Quantization<decltype(t)>(call, run).Run(); });
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline {
namespace {

void UpdateDelayedScalesCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const Tensor& history = call.args[0];
  const float largest = InfoOf(call.attrs<Format>()).max;
  ParallelFor(history.rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      float* first = run.Data<float>(history) + slot * history.row_stride;
      float* last = first + history.cols - 1;
      float* amax = run.Data<float>(call.args[2]) + slot;
      float* scale = run.Data<float>(call.args[1]) + slot;
      std::memmove(first, first + 1, static_cast<size_t>(history.cols - 1) * sizeof(float));
      *last = *amax;
      *amax = 0;
      float most = 0;
      for (const float* at = first; at <= last; ++at) {
        if (*at > most || std::isnan(*at)) most = *at;
        if (std::isnan(most)) break;
      }
      *scale = TensorScale(largest, most, *scale);
    }
  });
}

}  // namespace

HWY_EXPORT(QuantizeCpu);

void AddQuantizeCpu(CpuKernelTable& table) {
  ChooseTarget();
  table[&kQuantize].run = &HWY_DYNAMIC_DISPATCH(QuantizeCpu);
  table[&kUpdateDelayedScales].run = UpdateDelayedScalesCpu;
  AddDequantizeCpu(table);
}

}  // namespace ridgeline
#endif
