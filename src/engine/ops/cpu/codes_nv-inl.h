// nvfp4's scales and codes (precision/reference.h), a vector at a time. Included once for each target, inside of
// Highway's foreach_target.h.

#include "engine/ops/cpu/simd_targets.h"

#if defined(RIDGELINE_OPS_CODES_NV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_OPS_CODES_NV_INL_H_
#undef RIDGELINE_OPS_CODES_NV_INL_H_
#else
#define RIDGELINE_OPS_CODES_NV_INL_H_
#endif

#include <limits>

#include "engine/ops/cpu/codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

// Whether blocks with usual scales, which are nearly all, take a faster way. It needs fused multiply-adds, and
// conversions to fp16 that round to nearest.
inline constexpr bool kHasUsual = HWY_NATIVE_FMA != 0;

// E4M3 scales, the elements' divisor, and its inverse in usual blocks, 0 in others.
struct NvScales {
  VU code;
  VF divisor;
  VF inverse;
};

// The scaling of the blocks of a tensor with this amax.
class Nv {
 public:
  explicit Nv(float amax) : encode_scale_(TensorScale(kNvfp4Max, amax, 1)), tensor_scale_(1 / encode_scale_) {
    // Prevents subnormal or infinite numbers on the way to a quotient.
    if (tensor_scale_ > 0x1p-80F && tensor_scale_ < 0x1p100F) least_usual_ = 0x1p-6F;
  }
  float tensor_scale() const { return tensor_scale_; }

  HWY_INLINE NvScales Scales(VF amax) const {
    const auto scale = hn::Div(hn::Mul(amax, Splat(encode_scale_)), Splat(InfoOf(Format::kE2M1).max));
    const VU code = EncodeLanes<Format::kE4M3>(scale, Nearest());
    const VF divisor = hn::Mul(DecodeLanes<Format::kE4M3>(code), Splat(tensor_scale_));
    const auto zero = hn::Eq(divisor, Splat(0));
    // A normal number of E4M3 is at most 1/16 of it below the number that it rounds, so no quotient rounds to more than
    // 6.
    const auto usual = hn::And(hn::Ge(scale, Splat(least_usual_)), hn::Lt(scale, Splat(InfoOf(Format::kE4M3).max + 1)));
    return {code, hn::IfThenElse(zero, Splat(std::numeric_limits<float>::infinity()), divisor),
            hn::IfThenElseZero(usual, hn::Div(Splat(1), divisor))};
  }

 private:
  float encode_scale_;
  float tensor_scale_;
  float least_usual_ = std::numeric_limits<float>::infinity();  // of a block's scale before rounding
};

// x / divisor, rounded once. The product with the inverse may be off by 1.5 units in the last place; its error, exact
// except for the last bit, corrects it. No dividend is so near to the middle between two numbers that this picks the
// wrong one: the test tries all that are nearest to a middle.
template <bool kUsual>
HWY_INLINE VF Quotient(VF x, VF divisor, VF inverse) {
  if constexpr (!kUsual) return hn::Div(x, divisor);
  const VF near = hn::Mul(x, inverse);
  const VF excess = hn::MulSub(near, divisor, x);
  return hn::NegMulAdd(excess, inverse, near);  // keeps -0
}

// The scales of a row's blocks.
struct NvRow {
  const float* divisors;
  const float* inverses;
  bool usual;  // all of them are

  // Divides the block of elements from i on.
  template <bool kUsual>
  HWY_INLINE Pair Quotients(int64_t i, Pair x) const {
    const VF divisor = ScaleOf<16>(divisors, i);
    const VF inverse = kUsual ? ScaleOf<16>(inverses, i) : divisor;
    return {Quotient<kUsual>(x.a, divisor, inverse), Quotient<kUsual>(x.b, divisor, inverse)};
  }
};

// Rounds usual blocks stochastically, by arithmetic on fp16 numbers that are 2^-14 of the elements. Then E2M1's
// exponents are the lowest of fp16's, and below 1 those of its subnormal numbers. So the code is a number's upper bits,
// and 9 random bits are added to the 9 below them. The code lies in the upper 4 bits of the result. `draw`: shifted up
// by 3 bits.
HWY_INLINE VShared EncodeFp16([[maybe_unused]] VF x, VShared draw) {
#if HWY_NATIVE_FMA
  const DShared d;
  const auto half = hn::BitCast(d, hn::DemoteTo(DF16(), hn::Mul(x, Splat(0x1p-14F))));
  const auto magnitude = hn::Min(hn::ShiftLeft<3>(half), hn::Set(d, 0x7000));
  return BitSelect(hn::Set(d, 0x8000), half, hn::Add(magnitude, draw));
#else
  return draw;  // never called
#endif
}
HWY_INLINE VShared EvenDraw(VShared shared) { return hn::And(hn::ShiftLeft<3>(shared), hn::Set(DShared(), 0xff8)); }
HWY_INLINE VShared OddDraw(VShared shared) { return hn::And(hn::ShiftRight<4>(shared), hn::Set(DShared(), 0xff8)); }

// Returns a byte for every two elements of a row. `shared` has their random bits.
template <bool kUsual>
HWY_INLINE hn::Vec<DB> EncodeBytes(Pair x, VShared shared) {
  if constexpr (kUsual) {
    const auto low = hn::ShiftRight<12>(EncodeFp16(x.a, EvenDraw(shared)));
    const auto high = hn::ShiftRight<8>(EncodeFp16(x.b, OddDraw(shared)));
    return hn::TruncateTo(DB(), BitSelect(hn::Set(DShared(), 0xf), low, high));
  } else {
    const CodePair code = EncodePair<Format::kE2M1>(x, DrawsOf(shared));
    return hn::TruncateTo(DB(), Nibbles(code.a, code.b));
  }
}

// The codes of 16 rows of a vector of columns: 8 rows in each word, the first in the lowest bits.
struct ColumnCodes {
  VU low, high;
};
// Joins code(0 … 7), whose lower 4 bits count.
template <typename Code>
HWY_INLINE VU Eight(const Code& code) {
  VU all = code(7);
  HWY_UNROLL(7)
  for (int64_t i = 6; i >= 0; --i) all = BitSelect(hn::Set(DU(), 0xfU), code(i), hn::ShiftLeft<4>(all));
  return all;
}
template <bool kUsual>
HWY_INLINE ColumnCodes EncodeColumns(const VF (&y)[16]) {
  const auto code = [&](int64_t i) HWY_ATTR { return EncodeLanes<Format::kE2M1, kUsual>(y[i], Nearest()); };
  return {Eight(code), Eight([&](int64_t i) HWY_ATTR { return code(8 + i); })};
}

// Encodes the four rows of a word of random bits, in 16 bits.
HWY_INLINE VShared EncodeFour(const VF* y, VU word) {
  const auto low = hn::TruncateTo(DShared(), word);
  const auto high = hn::TruncateTo(DShared(), hn::ShiftRight<16>(word));
  const auto last = hn::Set(DShared(), 0xf000);
  auto all = EncodeFp16(y[0], EvenDraw(low));
  all = BitSelect(last, EncodeFp16(y[1], OddDraw(low)), hn::ShiftRight<4>(all));
  all = BitSelect(last, EncodeFp16(y[2], EvenDraw(high)), hn::ShiftRight<4>(all));
  return BitSelect(last, EncodeFp16(y[3], OddDraw(high)), hn::ShiftRight<4>(all));
}
struct FourWords {
  VU word[4];
};
template <bool kUsual>
HWY_INLINE ColumnCodes EncodeColumns(const VF (&y)[16], const FourWords& random) {
  if constexpr (kUsual) {
    const auto eight = [&](int64_t k) HWY_ATTR {
      const auto low = hn::PromoteTo(DU(), EncodeFour(y + 4 * k, random.word[k]));
      const auto high = hn::PromoteTo(DU(), EncodeFour(y + 4 * k + 4, random.word[k + 1]));
      return hn::Or(low, hn::ShiftLeft<16>(high));
    };
    return {eight(0), eight(2)};
  } else {
    const auto code = [&](int64_t i) HWY_ATTR {
      const auto draw = hn::ShiftRightSame(random.word[i / 4], static_cast<int>(i % 4 / 2 * 16 + i % 2 * 7));
      return EncodeLanes<Format::kE2M1>(y[i], Draw<9>{hn::And(draw, hn::Set(DU(), 0x1ffU))});
    };
    return {Eight(code), Eight([&](int64_t i) HWY_ATTR { return code(8 + i); })};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();
#endif
