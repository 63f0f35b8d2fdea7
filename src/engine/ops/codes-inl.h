// Codes of 8 and 4 bits and their scales (precision/reference.h), a vector at a time. Included once for each target,
// inside of Highway's foreach_target.h. All Pairs are split. Codes lie in 32-bit lanes; nothing here reads or writes
// memory but what is said.

#include "engine/ops/simd_targets.h"

#if defined(RIDGELINE_OPS_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_OPS_CODES_INL_H_
#undef RIDGELINE_OPS_CODES_INL_H_
#else
#define RIDGELINE_OPS_CODES_INL_H_
#endif

#include <bit>
#include <limits>

#include "engine/ops/philox-inl.h"
#include "engine/ops/simd-inl.h"
#include "engine/precision/quantizer.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline {
namespace HWY_NAMESPACE {

using VI = hn::Vec<DI>;
using DB = hn::Rebind<uint8_t, DU>;      // as many bytes as a vector has lanes
using DHalf = hn::Rebind<uint16_t, DU>;  // and as many 16-bit words
struct CodePair {
  VU a, b;
};
// In place of random bits.
struct Nearest {
  HWY_INLINE Nearest operator[](int64_t /*i*/) const { return {}; }
};

HWY_INLINE VF Magnitude(VU bits) { return hn::BitCast(DF(), bits); }
HWY_INLINE VI Signed(VU bits) { return hn::BitCast(DI(), bits); }
HWY_INLINE VI SplatInt(int32_t value) { return hn::Set(DI(), value); }

// precision/formats.h: Encode. The code of a magnitude is its exponent's steps and n, which is how many of the
// exponent's steps the magnitude has.
template <Format kFormat, typename Draw>
HWY_INLINE VU EncodeLanes(VF x, Draw draw) {
  constexpr FormatInfo kInfo = InfoOf(kFormat);
  constexpr int kShift = 23 - kInfo.mantissa_bits;
  constexpr int32_t kMinExponent = (kInfo.min_exponent + 127) << 23;
  constexpr auto kMaxBits = static_cast<int32_t>(kInfo.max_exponent + 127) << 23 |
                            (kInfo.max_code & ((1 << kInfo.mantissa_bits) - 1)) << kShift;
  const auto bits = hn::BitCast(DI(), x);
  const auto magnitude = hn::Min(hn::And(bits, SplatInt(0x7fffffff)), SplatInt(kMaxBits));
  const auto exponent = hn::Max(hn::And(magnitude, SplatInt(0x7f800000)), SplatInt(kMinExponent));
  VI n;
  if constexpr (std::is_same_v<Draw, Nearest>) {
    // The sum with 2^23 steps rounds to whole steps, and has their number in its last bits.
    const auto shifter = hn::Add(exponent, SplatInt(kShift << 23));
    const auto sum = hn::Add(hn::BitCast(DF(), magnitude), hn::BitCast(DF(), shifter));
    n = hn::Sub(hn::BitCast(DI(), sum), shifter);
  } else {
    const auto per_step = hn::Sub(SplatInt((254 + kInfo.mantissa_bits) << 23), exponent);  // 1 / the size of a step
    const auto steps = hn::Mul(hn::BitCast(DF(), magnitude), hn::BitCast(DF(), per_step));
    const auto whole = hn::ConvertTo(DI(), steps);
    const auto rest = hn::Mul(hn::Sub(steps, hn::ConvertTo(DF(), whole)), Splat(2147483648.0F));
    const auto up = hn::Lt(hn::BitCast(DI(), hn::ShiftRight<1>(draw)), hn::ConvertTo(DI(), rest));
    n = hn::Sub(whole, hn::VecFromMask(DI(), up));
  }
  const auto code = hn::Add(hn::ShiftRight<kShift>(hn::Sub(exponent, SplatInt(kMinExponent))), n);
  constexpr int kSignShift = kInfo.sign_code == 0x80 ? 24 : 28;
  const auto sign = hn::And(hn::ShiftRight<kSignShift>(bits), SplatInt(kInfo.sign_code));
  const auto number = hn::BitCast(DU(), hn::Or(code, sign));
  return hn::IfThenElse(hn::RebindMask(DU(), hn::IsNaN(x)), hn::Set(DU(), kInfo.nan_code), number);
}

template <Format kFormat>
HWY_INLINE CodePair EncodePair(Pair x, Nearest draw) {
  return {EncodeLanes<kFormat>(x.a, draw), EncodeLanes<kFormat>(x.b, draw)};
}
template <Format kFormat>
HWY_INLINE CodePair EncodePair(Pair x, const Bits& draw) {
  return {EncodeLanes<kFormat>(x.a, draw.a), EncodeLanes<kFormat>(x.b, draw.b)};
}

// precision/formats.h: Decode.
template <Format kFormat>
HWY_INLINE VF DecodeLanes(VU code) {
  constexpr FormatInfo kInfo = InfoOf(kFormat);
  constexpr int kShift = 23 - kInfo.mantissa_bits;
  constexpr uint32_t kMinExponent = static_cast<uint32_t>(kInfo.min_exponent + 127) << 23;
  const auto magnitude = hn::And(code, hn::Set(DU(), kInfo.sign_code - 1U));
  const auto shifted = hn::ShiftLeft<kShift>(magnitude);
  // A subnormal's mantissa lacks the leading 1: it is put there and taken off again.
  const auto with_one = hn::BitCast(DF(), hn::Add(shifted, hn::Set(DU(), kMinExponent)));
  const auto smallest_normal = hn::BitCast(DF(), hn::Set(DU(), kMinExponent));
  const auto normal = hn::BitCast(DF(), hn::Add(shifted, hn::Set(DU(), kMinExponent - (1U << 23))));
  const auto subnormal = hn::Lt(Signed(magnitude), SplatInt(1 << kInfo.mantissa_bits));
  VF value = hn::IfThenElse(hn::RebindMask(DF(), subnormal), hn::Sub(with_one, smallest_normal), normal);
  if constexpr (kFormat != Format::kE2M1) {
    const auto special = hn::RebindMask(DF(), hn::Gt(Signed(magnitude), SplatInt(kInfo.max_code)));
    // E5M2's infinity and NaN have their mantissas; E4M3's NaN may have any.
    const auto largest = hn::Or(hn::Set(DU(), 0x7f800000U), hn::And(shifted, hn::Set(DU(), 0x7fffffU)));
    value = hn::IfThenElse(special, hn::BitCast(DF(), largest), value);
  }
  constexpr int kSignShift = kInfo.sign_code == 0x80 ? 24 : 28;
  const auto sign = hn::ShiftLeft<kSignShift>(hn::And(code, hn::Set(DU(), uint32_t{kInfo.sign_code})));
  return hn::Or(value, hn::BitCast(DF(), sign));
}

HWY_INLINE VF DecodeE8M0Lanes(VU code) {
  const auto power = hn::Max(hn::ShiftLeft<23>(code), hn::Set(DU(), 1U << 22));  // 2^-127 is subnormal
  const auto nan = hn::Eq(code, hn::Set(DU(), 255U));
  return hn::BitCast(DF(), hn::IfThenElse(nan, hn::Set(DU(), 0x7fc00000U), power));
}

// A byte an element, in the elements' order.
HWY_INLINE void StoreBytes(CodePair code, uint8_t* to) {
  const auto both = hn::Or(code.a, hn::ShiftLeft<8>(code.b));
  hn::StoreU(hn::TruncateTo(DHalf(), both), DHalf(), reinterpret_cast<uint16_t*>(to));
}
// Half a byte an element.
HWY_INLINE void StoreNibbles(CodePair code, uint8_t* to) {
  const auto both = hn::Or(code.a, hn::ShiftLeft<4>(code.b));
  hn::StoreU(hn::TruncateTo(DB(), both), DB(), to);
}
template <Format kFormat>
HWY_INLINE void StoreCodes(CodePair code, uint8_t* to) {
  if constexpr (kFormat == Format::kE2M1) {
    StoreNibbles(code, to);
  } else {
    StoreBytes(code, to);
  }
}
template <Format kFormat>
HWY_INLINE CodePair LoadCodes(const uint8_t* from) {
  if constexpr (kFormat == Format::kE2M1) {
    const auto both = hn::PromoteTo(DU(), hn::LoadU(DB(), from));
    return {hn::And(both, hn::Set(DU(), 0xfU)), hn::ShiftRight<4>(both)};
  } else {
    const auto both = hn::PromoteTo(DU(), hn::LoadU(DHalf(), reinterpret_cast<const uint16_t*>(from)));
    return {hn::And(both, hn::Set(DU(), 0xffU)), hn::ShiftRight<8>(both)};
  }
}
// Bytes of a block's codes.
template <Format kFormat>
inline constexpr int64_t kCodeBytes = kFormat == Format::kE2M1 ? kBlock / 2 : kBlock;

// The E8M0 scales of blocks with these amaxes, and what elements are multiplied by.
struct BlockScale {
  VU code;
  VF value;
};
HWY_INLINE BlockScale MxScale(VF amax, ScaleRule rule) {
  constexpr FormatInfo kInfo = InfoOf(Format::kE4M3);
  const bool up = rule == ScaleRule::kRoundUp;
  const auto quotient = hn::Div(amax, Splat(up ? kInfo.max : static_cast<float>(1 << kInfo.max_exponent)));
  const auto bits = hn::Add(hn::BitCast(DU(), quotient), hn::Set(DU(), up ? 0x7fffffU : 0U));
  const auto nan = hn::RebindMask(DU(), hn::IsNaN(amax));
  const auto number = hn::Min(hn::ShiftRight<23>(bits), hn::Set(DU(), 254));
  const auto inverse = hn::IfThenElse(nan, hn::Set(DU(), 255), hn::Sub(hn::Set(DU(), 254), number));
  return {hn::IfThenElse(nan, hn::Set(DU(), 255), number), DecodeE8M0Lanes(inverse)};
}
// E4M3 scales, and what elements are divided by.
HWY_INLINE BlockScale NvScale(VF amax, float encode_scale, float tensor_scale) {
  const auto scale = hn::Div(hn::Mul(amax, Splat(encode_scale)), Splat(InfoOf(Format::kE2M1).max));
  const VU code = EncodeLanes<Format::kE4M3>(scale, Nearest());
  const VF divisor = hn::Mul(DecodeLanes<Format::kE4M3>(code), Splat(tensor_scale));
  const auto zero = hn::Eq(divisor, Splat(0));
  return {code, hn::IfThenElse(zero, Splat(std::numeric_limits<float>::infinity()), divisor)};
}

// The values of a block of elements' scales, which begins at a multiple of kBlock; one for each kSize of them.
template <int64_t kSize>
HWY_INLINE VF ScaleOf(const float* scales, int64_t first) {
  const float* scale = scales + first / kSize;
  if constexpr (kBlock <= kSize) return Splat(*scale);
  static_assert(kBlock <= 2 * kSize);
  return hn::ConcatLowerLower(DF(), Splat(scale[1]), Splat(scale[0]));
}

// The largest magnitudes of kSize elements that are added up row by row; a NaN is larger than all numbers. They are
// compared as integers, those of bf16 in 16 bits.
template <typename T, int64_t kSize = kBlock>
class Amax {
 public:
  HWY_INLINE void Add(const T* row) {
    for (int64_t v = 0; v < kVectors; ++v) {
      const auto bits = hn::LoadU(D(), reinterpret_cast<const Word*>(row) + v * kWords);
      max_[v] = hn::Max(max_[v], hn::And(bits, hn::Set(D(), static_cast<Word>(static_cast<Word>(-1) >> 1))));
    }
  }
  // Of all.
  HWY_INLINE float Largest() const {
    auto max = max_[0];
    for (int64_t v = 1; v < kVectors; ++v) max = hn::Max(max, max_[v]);
    const uint32_t bits = hn::GetLane(hn::MaxOfLanes(D(), max));
    return std::bit_cast<float>(bits << (32 - 8 * sizeof(T)));
  }
  // Of each column.
  HWY_INLINE Pair Columns() const {
    static_assert(kSize == kBlock);
    alignas(64) T block[kBlock];
    for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(max_[v], D(), reinterpret_cast<Word*>(block) + v * kWords);
    return Load<true>(block, Full());
  }

 private:
  using Word = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
  using D = hn::CappedTag<Word, kSize>;
  static constexpr int64_t kWords = static_cast<int64_t>(hn::MaxLanes(D()));
  static constexpr int64_t kVectors = kSize / kWords;
  hn::Vec<D> max_[kVectors];

 public:
  HWY_INLINE Amax() {
    for (auto& max : max_) max = hn::Zero(D());
  }
};
// The larger of two such numbers.
inline float LargerAmax(float a, float b) {
  return std::bit_cast<float>(std::max(std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b)));
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline
HWY_AFTER_NAMESPACE();
#endif
