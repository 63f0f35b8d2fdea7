// Codes of 8 and 4 bits and their scales (precision/reference.h), a vector at a time. Included once for each target,
// inside of Highway's foreach_target.h. All Pairs are split, and codes lie in lanes as wide as their numbers.

#include "engine/ops/cpu/simd_targets.h"

#if defined(RIDGELINE_OPS_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_OPS_CODES_INL_H_
#undef RIDGELINE_OPS_CODES_INL_H_
#else
#define RIDGELINE_OPS_CODES_INL_H_
#endif

#include <limits>

#include "engine/ops/cpu/philox-inl.h"
#include "engine/ops/cpu/simd-inl.h"
#include "engine/precision/quantizer.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

using VI = hn::Vec<DI>;
using DB = hn::Rebind<uint8_t, DU>;      // as many bytes as a vector has lanes
using DHalf = hn::Rebind<uint16_t, DU>;  // and as many 16-bit words
struct CodePair {
  VU a, b;
};
// Stands in for random bits.
struct Nearest {
  HWY_INLINE Nearest operator[](int64_t /*i*/) const { return {}; }
};

HWY_INLINE VI Signed(VU bits) { return hn::BitCast(DI(), bits); }
HWY_INLINE VI SplatInt(int32_t value) { return hn::Set(DI(), value); }
// Takes each bit from `yes` if the mask's bit is set, else from `no`.
template <typename V>
HWY_INLINE V BitSelect(V mask, V yes, V no) {
  return hn::Or(hn::And(mask, yes), hn::AndNot(mask, no));
}

// The kBits random bits of each lane.
template <int kBits>
struct Draw {
  static constexpr int kCount = kBits;
  VU bits;
};

// precision/formats.h: Encode. The lower bits of each lane are the code; the upper ones are arbitrary. kUsual: x is a
// number that rounds to at most the largest.
template <Format kFormat, bool kUsual = false, typename Draw>
HWY_INLINE VU EncodeLanes(VF x, Draw draw) {
  constexpr FormatInfo kInfo = InfoOf(kFormat);
  constexpr int kShift = 23 - kInfo.mantissa_bits;
  constexpr int32_t kMinExponent = (kInfo.min_exponent + 127) << 23;
  constexpr int32_t kMaxBits = (kInfo.max_exponent + 127) << 23 | (kInfo.max_code & ((1 << kInfo.mantissa_bits) - 1))
                                                                      << kShift;
  const auto bits = hn::BitCast(DI(), x);
  auto magnitude = hn::And(bits, SplatInt(0x7fffffff));
  if constexpr (!kUsual || !std::is_same_v<Draw, Nearest>) magnitude = hn::Min(magnitude, SplatInt(kMaxBits));
  const auto exponent = hn::Max(hn::And(magnitude, SplatInt(0x7f800000)), SplatInt(kMinExponent));
  VI code;
  if constexpr (std::is_same_v<Draw, Nearest>) {
    // Adding 2^23 of the exponent's steps rounds to whole steps, and the sum ends in their number, n. The sum's own
    // exponent, moved to the same place, gives the steps of the codes below, plus kTooLarge. That is subtracted from n
    // beforehand.
    constexpr int32_t kTooLarge = ((kMinExponent >> 23) + kShift) << kInfo.mantissa_bits;
    constexpr int32_t kFirst = -kTooLarge & (kInfo.sign_code - 1);
    static_assert(kFirst % 2 == 0);
    const auto shifter = hn::Add(exponent, SplatInt((kShift << 23) + kFirst));
    const auto sum = hn::BitCast(DI(), hn::Add(hn::BitCast(DF(), magnitude), hn::BitCast(DF(), shifter)));
    code = hn::Add(sum, hn::ShiftRight<kShift>(sum));
  } else {
    // 2^kCount / the size of a step. The sum with 2^23 rounds to whole parts and ends in their number.
    constexpr int kBits = Draw::kCount;
    const auto per_part = hn::Sub(SplatInt((254 + kInfo.mantissa_bits + kBits) << 23), exponent);
    const auto parts = hn::MulAdd(hn::BitCast(DF(), magnitude), hn::BitCast(DF(), per_part), Splat(8388608.0F));
    const auto drawn = hn::Add(hn::BitCast(DI(), parts), Signed(draw.bits));
    const auto n = hn::ShiftRight<kBits>(hn::Sub(drawn, SplatInt(0x4b000000)));
    code = hn::Add(hn::ShiftRight<kShift>(hn::Sub(exponent, SplatInt(kMinExponent))), n);
  }
  constexpr int kSignShift = kInfo.sign_code == 0x80 ? 24 : 28;
  const auto magnitude_bits = SplatInt(kInfo.sign_code - 1);
  const auto number = BitSelect(magnitude_bits, code, hn::ShiftRight<kSignShift>(bits));
  if constexpr (kUsual) return hn::BitCast(DU(), number);
  return hn::BitCast(DU(), hn::IfThenElse(hn::RebindMask(DI(), hn::IsNaN(x)), SplatInt(kInfo.nan_code), number));
}

template <Format kFormat, bool kUsual = false>
HWY_INLINE CodePair EncodePair(Pair x, Nearest draw) {
  return {EncodeLanes<kFormat, kUsual>(x.a, draw), EncodeLanes<kFormat, kUsual>(x.b, draw)};
}
template <Format kFormat, bool kUsual = false, int kBits>
HWY_INLINE CodePair EncodePair(Pair x, const Draws<kBits>& draw) {
  return {EncodeLanes<kFormat, kUsual>(x.a, Draw<kBits>{draw.a}),
          EncodeLanes<kFormat, kUsual>(x.b, Draw<kBits>{draw.b})};
}

// precision/formats.h: Decode.
template <Format kFormat>
HWY_INLINE VF DecodeLanes(VU code) {
  constexpr FormatInfo kInfo = InfoOf(kFormat);
  constexpr int kShift = 23 - kInfo.mantissa_bits;
  constexpr uint32_t kMinExponent = static_cast<uint32_t>(kInfo.min_exponent + 127) << 23;
  const auto magnitude = hn::And(code, hn::Set(DU(), kInfo.sign_code - 1U));
  const auto shifted = hn::ShiftLeft<kShift>(magnitude);
  // A subnormal's mantissa lacks the leading 1, so it is added and subtracted again.
  const auto with_one = hn::BitCast(DF(), hn::Add(shifted, hn::Set(DU(), kMinExponent)));
  const auto smallest_normal = hn::BitCast(DF(), hn::Set(DU(), kMinExponent));
  const auto normal = hn::BitCast(DF(), hn::Add(shifted, hn::Set(DU(), kMinExponent - (1U << 23))));
  const auto subnormal = hn::Lt(Signed(magnitude), SplatInt(1 << kInfo.mantissa_bits));
  VF value = hn::IfThenElse(hn::RebindMask(DF(), subnormal), hn::Sub(with_one, smallest_normal), normal);
  if constexpr (kFormat != Format::kE2M1) {
    const auto special = hn::RebindMask(DF(), hn::Gt(Signed(magnitude), SplatInt(kInfo.max_code)));
    // E5M2's infinity and NaN keep their mantissas; E4M3's NaN may have any.
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

// Two codes of 4 bits in 8 bits.
HWY_INLINE VU Nibbles(VU low, VU high) { return BitSelect(hn::Set(DU(), 0xfU), low, hn::ShiftLeft<4>(high)); }
HWY_INLINE VU BothBytes(CodePair code) { return BitSelect(hn::Set(DU(), 0xffU), code.a, hn::ShiftLeft<8>(code.b)); }
// Stores a byte an element, in the elements' order.
HWY_INLINE void StoreBytes(CodePair code, uint8_t* to) {
  hn::StoreU(hn::TruncateTo(DHalf(), BothBytes(code)), DHalf(), reinterpret_cast<uint16_t*>(to));
}
// `stream`: store whole vectors past the caches, if possible; `to` must then be aligned to what is stored.
template <typename D>
HWY_INLINE void StoreVector(D d, hn::Vec<D> bytes, uint8_t* to, bool stream) {
  auto* lanes = reinterpret_cast<hn::TFromD<D>*>(to);
  if (stream && hn::MaxLanes(d) * sizeof(hn::TFromD<D>) >= 16) {
    hn::Stream(bytes, d, lanes);
  } else {
    hn::StoreU(bytes, d, lanes);
  }
}
// Stores the codes of elements, in their order, half a byte or a byte each. `stream`: as in StoreVector.
template <Format kFormat>
HWY_INLINE void StoreCodes(CodePair code, uint8_t* to, bool stream) {
  if constexpr (kFormat == Format::kE2M1) {
    StoreVector(DB(), hn::TruncateTo(DB(), Nibbles(code.a, code.b)), to, stream);
  } else {
    StoreVector(DHalf(), hn::TruncateTo(DHalf(), BothBytes(code)), to, stream);
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

// The E8M0 scales of blocks with these amaxes, and the factors for their elements.
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

// Encodes bf16 numbers as mxfp8 by arithmetic on their 16 bits. If x over its block's scale is a normal number of E4M3,
// the code is x less a difference of exponents, without the last 4 bits of its mantissa. EncodeLanes handles blocks
// with other numbers (few: subnormal ones are less than 2^-14 of their block's largest).
using VH = hn::Vec<DH>;
class MxBits {
 public:
  // `scale`: the E8M0 code of each element's block, in kFirst … kLast.
  static constexpr uint16_t kFirst = 7;
  static constexpr uint16_t kLast = 247;  // larger for infinity and NaN
  HWY_INLINE explicit MxBits(VH scale)
      : offset_(hn::Sub(hn::ShiftLeft<7>(scale), hn::Set(DH(), kFirst << 7))),
        least_(hn::Add(offset_, hn::Set(DH(), (1 << 7) - 1))) {}

  // Returns the code of each element. `others` becomes nonzero in lanes whose code is wrong, because the element is
  // subnormal.
  HWY_INLINE VH Encode(VH x, VH& others) const {
    const auto magnitude = hn::And(x, hn::Set(DH(), 0x7fff));
    others = hn::Or(others, hn::SaturatedSub(least_, hn::Sub(magnitude, hn::Set(DH(), 1))));  // 0 is no exception
    const auto all = hn::SaturatedSub(magnitude, offset_);
    const auto odd = hn::And(hn::ShiftRight<4>(all), hn::Set(DH(), 1));
    const auto rounded = hn::ShiftRight<4>(hn::Add(hn::Add(all, hn::Set(DH(), 7)), odd));
    const auto code = hn::Min(rounded, hn::Set(DH(), InfoOf(Format::kE4M3).max_code));
    return hn::OrAnd(code, hn::ShiftRight<8>(x), hn::Set(DH(), 0x80));
  }

 private:
  VH offset_;
  VH least_;  // the smallest normal number, less 1
};
HWY_INLINE bool AllZero(VH x) { return hn::AllTrue(DH(), hn::Eq(x, hn::Zero(DH()))); }
using DCodes = hn::Rebind<uint8_t, DH>;

// The scales of a vector of elements that begins at a multiple of kBlock; each scale covers kSize elements.
template <int64_t kSize>
HWY_INLINE VF ScaleOf(const float* scales, int64_t first) {
  const float* scale = scales + first / kSize;
  if constexpr (kBlock <= kSize) return Splat(*scale);
  static_assert(kBlock <= 2 * kSize);
  return hn::ConcatLowerLower(DF(), Splat(scale[1]), Splat(scale[0]));
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();
#endif
