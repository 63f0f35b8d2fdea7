#include "engine/ops/cpu/attention_rows.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/attention_rows.cc"
#include "engine/ops/cpu/simd_targets.h"  // before Highway

#include <hwy/foreach_target.h>

#include "engine/ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Returns 2^x for x < 128, and 2^-125 for x below -125; NaN stays NaN. The relative error is 1e-7 in fp32, and 4e-6 if
// the result will be rounded to bf16. The polynomials interpolate 2^r at the Chebyshev nodes of [-1/2, 1/2].
template <typename T>
HWY_INLINE VF Exp2(VF x) {
  x = hn::Max(Splat(-125.0F), x);  // for a NaN, x86's max returns the second operand
  // Adding 1.5 * 2^23 rounds x to an integer n and leaves it in the lowest bits. x is small enough for that, and it
  // costs less than a conversion that checks its range.
  const auto magic = Splat(12582912.0F);
  const auto shifted = hn::Add(x, magic);
  const auto r = hn::Sub(x, hn::Sub(shifted, magic));
  VF y;
  if constexpr (sizeof(T) == 2) {
    y = hn::MulAdd(Splat(0.0096663685F), r, Splat(0.0559219758F));
    y = hn::MulAdd(y, r, Splat(0.2402234904F));
    y = hn::MulAdd(y, r, Splat(0.6931210452F));
  } else {
    y = hn::MulAdd(Splat(0.0013390863F), r, Splat(0.0096760319F));
    y = hn::MulAdd(y, r, Splat(0.0555035711F));
    y = hn::MulAdd(y, r, Splat(0.2402210749F));
    y = hn::MulAdd(y, r, Splat(0.6931471880F));
  }
  y = hn::MulAdd(y, r, Splat(1.0F));
  return hn::BitCast(DF(), hn::Add(hn::BitCast(DI(), y), hn::ShiftLeft<23>(hn::BitCast(DI(), shifted))));
}

// Stores like Store, but rounds ties away from zero: a third of the instructions, for values that are only multiplied.
template <typename Count>
HWY_INLINE void StoreFast(Pair value, float* to, Count count) {
  Store<false>(value, to, count);
}
HWY_INLINE void StoreFast(Pair value, uint16_t* to, Full /*count*/) {
  const auto half = hn::Set(DU(), 0x8000);
  const auto even = hn::ShiftRight<16>(hn::Add(hn::BitCast(DU(), value.a), half));
  const auto odd = hn::Add(hn::BitCast(DU(), value.b), half);
  hn::StoreU(hn::OddEven(hn::BitCast(DH(), odd), hn::BitCast(DH(), even)), DH(), to);
}
HWY_INLINE void StoreFast(Pair value, uint16_t* to, Part count) { Store<true>(value, to, count); }

int64_t RoundDown(int64_t n) { return n / kBlock * kBlock; }
int64_t RoundUp(int64_t n) { return RoundDown(n + kBlock - 1); }

// An unseen column adds 2^-125 to a sum of at least 1, that is, nothing. In p it is set to 0.
template <typename T>
void AddSoftmax(const SoftmaxBlock& block, T* p) {
  constexpr bool kSplit = sizeof(T) == 2;
  for (int64_t row = 0; row < block.rows; ++row) {
    float* scores = block.scores + row * block.cols;
    T* p_row = p + row * block.cols;
    const int64_t seen = std::clamp<int64_t>(block.visible + row, 0, block.cols);
    const int64_t used = std::min(RoundUp(seen), block.cols);  // whole vectors
    if (seen == 0) {
      std::fill_n(p_row, block.cols, T{});
      continue;
    }
    std::fill(scores + seen, scores + used, kMinusInfinity);

    Pair maxima = SplatPair(kMinusInfinity);
    ForBlocks(used, [&](int64_t i, auto count) {
      const Pair s = Load<false>(scores + i, count, kMinusInfinity);
      maxima = {hn::Max(maxima.a, s.a), hn::Max(maxima.b, s.b)};
    });
    const float block_max = hn::GetLane(hn::MaxOfLanes(DF(), hn::Max(maxima.a, maxima.b))) * block.scale;
    const float old_max = block.row_max[row];
    const float new_max = std::max(old_max, block_max);
    block.row_max[row] = new_max;

    const VF scale = Splat(block.scale);
    const VF top = Splat(new_max);
    Pair sums = SplatPair(0);
    ForBlocks(used, [&](int64_t i, auto count) {
      const Pair s = Load<kSplit>(scores + i, count, kMinusInfinity);
      const Pair e = {Exp2<T>(hn::MulSub(s.a, scale, top)), Exp2<T>(hn::MulSub(s.b, scale, top))};
      sums = Plus(sums, e);
      StoreFast(e, p_row + i, count);
    });
    std::fill(p_row + seen, p_row + block.cols, T{});
    if (new_max == old_max) {
      block.row_sum[row] += Sum(sums);
    } else {
      const VF shrink = Exp2<float>(Splat(old_max - new_max));
      block.row_sum[row] = block.row_sum[row] * hn::GetLane(shrink) + Sum(sums);
      float* out = block.out + row * block.head_dim;
      ForBlocks(block.head_dim, [&](int64_t i, auto count) {
        Store<false>(Times(Load<false>(out + i, count), {shrink, shrink}), out + i, count);
      });
    }
  }
}

void AddSoftmaxF32(const SoftmaxBlock& block, float* p) { AddSoftmax(block, p); }
void AddSoftmaxBf16(const SoftmaxBlock& block, uint16_t* p) { AddSoftmax(block, p); }

template <typename T>
void Gradients(const GradientBlock& block, T* p, T* ds) {
  constexpr bool kSplit = sizeof(T) == 2;
  const VF scale = Splat(block.scale);
  const VF plain_scale = Splat(block.plain_scale);
  for (int64_t row = 0; row < block.rows; ++row) {
    const float* scores = block.scores + row * block.cols;
    const float* dp = block.dp + row * block.cols;
    T* p_row = p + row * block.cols;
    T* ds_row = ds + row * block.cols;
    const int64_t first = std::clamp<int64_t>(block.seen_from + row, 0, block.cols);
    const int64_t begin = RoundDown(first);
    ForBlocks(block.cols - begin, [&](int64_t offset, auto count) {
      const int64_t i = begin + offset;
      const Pair s = Load<kSplit>(scores + i, count);
      const Pair lse = Load<kSplit>(block.lse + i, count);
      const Pair e = {Exp2<T>(hn::MulSub(s.a, scale, lse.a)), Exp2<T>(hn::MulSub(s.b, scale, lse.b))};
      StoreFast(e, p_row + i, count);
      const Pair slope = Load<kSplit>(dp + i, count);
      const Pair delta = Load<kSplit>(block.delta + i, count);
      const Pair d = {hn::Mul(hn::Mul(e.a, plain_scale), hn::Sub(slope.a, delta.a)),
                      hn::Mul(hn::Mul(e.b, plain_scale), hn::Sub(slope.b, delta.b))};
      StoreFast(d, ds_row + i, count);
    });
    std::fill_n(p_row, first, T{});
    std::fill_n(ds_row, first, T{});
  }
}

void GradientsF32(const GradientBlock& block, float* p, float* ds) { Gradients(block, p, ds); }
void GradientsBf16(const GradientBlock& block, uint16_t* p, uint16_t* ds) { Gradients(block, p, ds); }

template <typename T>
float Dot(const T* a, const T* b, int64_t n) {
  constexpr bool kSplit = sizeof(T) == 2;
  Pair sum = SplatPair(0);
  ForBlocks(
      n, [&](int64_t i, auto count) { sum = TimesPlus(Load<kSplit>(a + i, count), Load<kSplit>(b + i, count), sum); });
  return Sum(sum);
}
float DotF32(const float* a, const float* b, int64_t n) { return Dot(a, b, n); }
float DotBf16(const uint16_t* a, const uint16_t* b, int64_t n) { return Dot(a, b, n); }
float DotFp16(const F16* a, const F16* b, int64_t n) { return Dot(a, b, n); }

void Scale(float* x, float factor, int64_t n) {
  ForBlocks(n, [&](int64_t i, auto count) {
    Store<false>(Times(Load<false>(x + i, count), SplatPair(factor)), x + i, count);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::engine {

HWY_EXPORT(AddSoftmaxF32);
HWY_EXPORT(AddSoftmaxBf16);
HWY_EXPORT(GradientsF32);
HWY_EXPORT(GradientsBf16);
HWY_EXPORT(DotF32);
HWY_EXPORT(DotBf16);
HWY_EXPORT(DotFp16);
HWY_EXPORT(Scale);

void AddSoftmaxBlock(const SoftmaxBlock& block, void* p, DType p_dtype) {
  if (p_dtype == DType::kF32) {
    HWY_DYNAMIC_DISPATCH(AddSoftmaxF32)(block, static_cast<float*>(p));
  } else {
    HWY_DYNAMIC_DISPATCH(AddSoftmaxBf16)(block, static_cast<uint16_t*>(p));
  }
}

void ScoreGradients(const GradientBlock& block, void* p, void* ds, DType dtype) {
  if (dtype == DType::kF32) {
    HWY_DYNAMIC_DISPATCH(GradientsF32)(block, static_cast<float*>(p), static_cast<float*>(ds));
  } else {
    HWY_DYNAMIC_DISPATCH(GradientsBf16)(block, static_cast<uint16_t*>(p), static_cast<uint16_t*>(ds));
  }
}

float DotRow(const void* a, const void* b, DType dtype, int64_t n) {
  if (dtype == DType::kF32) {
    return HWY_DYNAMIC_DISPATCH(DotF32)(static_cast<const float*>(a), static_cast<const float*>(b), n);
  }
  if (dtype == DType::kBF16) {
    return HWY_DYNAMIC_DISPATCH(DotBf16)(static_cast<const uint16_t*>(a), static_cast<const uint16_t*>(b), n);
  }
  return HWY_DYNAMIC_DISPATCH(DotFp16)(static_cast<const hwy::float16_t*>(a), static_cast<const hwy::float16_t*>(b), n);
}

void ScaleRow(float* x, float factor, int64_t n) { HWY_DYNAMIC_DISPATCH(Scale)(x, factor, n); }

}  // namespace ridgeline::engine
#endif
