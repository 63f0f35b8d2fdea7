// Common parts of the vectorised kernels: loads and stores of fp32 and bf16, loops over ranges of any length, e^x.
// Included once for each target, inside of Highway's foreach_target.h. bf16 is uint16_t here, fp16 hwy::float16_t.
//
// The unit of work is a Pair: kBlock consecutive elements in two fp32 vectors. Linear: the first half of them, then the
// second. Split: the even ones, then the odd ones, which is how 16-bit elements unpack and pack with a shift and a
// mask. An op is split if any operand has 16 bits (its fp32 operands are then de-interleaved), else linear.

#include "engine/ops/cpu/simd_targets.h"

#if defined(RIDGELINE_OPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_OPS_SIMD_INL_H_
#undef RIDGELINE_OPS_SIMD_INL_H_
#else
#define RIDGELINE_OPS_SIMD_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/parallel.h"
#include "engine/device/cpu/kernel.h"
#include "engine/tensor/fp16.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DU = hn::ScalableTag<uint32_t>;
using DI = hn::ScalableTag<int32_t>;
using DH = hn::ScalableTag<uint16_t>;
using F16 = hwy::float16_t;
using DF16 = hn::Rebind<F16, DF>;
using VF = hn::Vec<DF>;
using VU = hn::Vec<DU>;

struct Pair {
  VF a, b;
};

inline constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(DF()));
inline constexpr int64_t kBlock = 2 * kLanes;

template <typename... T>
inline constexpr bool kAnySplit = (... || (sizeof(T) == 2));

// How many elements of a block exist: all of them, or the first `size`.
struct Full {
  static constexpr int64_t size = kBlock;
};
struct Part {
  int64_t size;
};

HWY_INLINE VF Splat(float value) { return hn::Set(DF(), value); }
HWY_INLINE Pair SplatPair(float value) { return {Splat(value), Splat(value)}; }
HWY_INLINE Pair Plus(Pair x, Pair y) { return {hn::Add(x.a, y.a), hn::Add(x.b, y.b)}; }
HWY_INLINE Pair Minus(Pair x, Pair y) { return {hn::Sub(x.a, y.a), hn::Sub(x.b, y.b)}; }
HWY_INLINE Pair Times(Pair x, Pair y) { return {hn::Mul(x.a, y.a), hn::Mul(x.b, y.b)}; }
HWY_INLINE Pair TimesPlus(Pair x, Pair y, Pair z) { return {hn::MulAdd(x.a, y.a, z.a), hn::MulAdd(x.b, y.b, z.b)}; }
// z - x * y
HWY_INLINE Pair MinusTimes(Pair x, Pair y, Pair z) {
  return {hn::NegMulAdd(x.a, y.a, z.a), hn::NegMulAdd(x.b, y.b, z.b)};
}
HWY_INLINE float Sum(Pair x) { return hn::GetLane(hn::SumOfLanes(DF(), hn::Add(x.a, x.b))); }

template <bool kSplit>
HWY_INLINE Pair Load(const float* from, Full /*count*/) {
  const auto low = hn::LoadU(DF(), from);
  const auto high = hn::LoadU(DF(), from + kLanes);
  if constexpr (kSplit) return {hn::ConcatEven(DF(), high, low), hn::ConcatOdd(DF(), high, low)};
  return {low, high};
}
template <bool kSplit>
HWY_INLINE Pair Load(const uint16_t* from, Full /*count*/) {
  static_assert(kSplit);
  const auto bits = hn::BitCast(DU(), hn::LoadU(DH(), from));
  return {hn::BitCast(DF(), hn::ShiftLeft<16>(bits)), hn::BitCast(DF(), hn::And(bits, hn::Set(DU(), 0xffff0000U)))};
}
// Highway's emulated conversions neither round to nearest nor keep NaN.
#if HWY_TARGET == HWY_EMU128
HWY_INLINE VF WidenFp16(const F16* from) {
  alignas(64) float values[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) values[i] = FromFp16(std::bit_cast<uint16_t>(from[i]));
  return hn::Load(DF(), values);
}
HWY_INLINE void NarrowToFp16(const float* values, F16* to) {
  for (int64_t i = 0; i < kLanes; ++i) to[i] = std::bit_cast<F16>(ToFp16(values[i]));
}
#else
HWY_INLINE VF WidenFp16(const F16* from) { return hn::PromoteTo(DF(), hn::LoadU(DF16(), from)); }
HWY_INLINE void NarrowToFp16(const float* values, F16* to) {
  hn::StoreU(hn::DemoteTo(DF16(), hn::Load(DF(), values)), DF16(), to);
}
#endif
template <bool kSplit>
HWY_INLINE Pair Load(const F16* from, Full /*count*/) {
  static_assert(kSplit);
  const auto low = WidenFp16(from);
  const auto high = WidenFp16(from + kLanes);
  return {hn::ConcatEven(DF(), high, low), hn::ConcatOdd(DF(), high, low)};
}
// Elements beyond `count` are `pad`, given in T's representation.
template <bool kSplit, typename T>
HWY_INLINE Pair Load(const T* from, Part count, T pad = {}) {
  alignas(64) T block[kBlock];
  std::fill_n(block, kBlock, pad);
  std::memcpy(block, from, static_cast<size_t>(count.size) * sizeof(T));
  return Load<kSplit>(block, Full());
}
template <bool kSplit, typename T>
HWY_INLINE Pair Load(const T* from, Full count, T /*pad*/) {
  return Load<kSplit>(from, count);
}

// Returns 1 for each existing element, else 0.
template <bool kSplit>
HWY_INLINE Pair OnesWhere(Part count) {
  alignas(64) float ones[kBlock] = {};
  std::fill_n(ones, count.size, 1.0F);
  return Load<kSplit>(ones, Full());
}

// Returns bf16 in the upper halves, rounded to nearest, ties to even; NaN stays NaN. The lower halves are arbitrary.
HWY_INLINE VU RoundToUpperHalf(VF value) {
  const auto bits = hn::BitCast(DU(), value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(DU(), 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(DU(), 0x7fff)), odd);
  const auto quiet = hn::Or(bits, hn::Set(DU(), 0x400000));
  return hn::IfThenElse(hn::RebindMask(DU(), hn::IsNaN(value)), quiet, rounded);
}

// `stream`: store past the caches; `to` must then be aligned to a vector.
template <bool kSplit>
HWY_INLINE void Store(Pair value, float* to, Full /*count*/, bool stream = false) {
  if constexpr (kSplit) {
    hn::StoreInterleaved2(value.a, value.b, DF(), to);
  } else if (stream) {
    hn::Stream(value.a, DF(), to);
    hn::Stream(value.b, DF(), to + kLanes);
  } else {
    hn::StoreU(value.a, DF(), to);
    hn::StoreU(value.b, DF(), to + kLanes);
  }
}
template <bool kSplit>
HWY_INLINE void Store(Pair value, uint16_t* to, Full /*count*/, bool stream = false) {
  static_assert(kSplit);
  const auto even = hn::BitCast(DH(), hn::ShiftRight<16>(RoundToUpperHalf(value.a)));
  const auto packed = hn::OddEven(hn::BitCast(DH(), RoundToUpperHalf(value.b)), even);
  if (stream) {
    hn::Stream(packed, DH(), to);
  } else {
    hn::StoreU(packed, DH(), to);
  }
}
template <bool kSplit>
HWY_INLINE void Store(Pair value, F16* to, Full /*count*/, bool /*stream*/ = false) {
  static_assert(kSplit);
  alignas(64) float linear[kBlock];
  hn::StoreInterleaved2(value.a, value.b, DF(), linear);
  NarrowToFp16(linear, to);
  NarrowToFp16(linear + kLanes, to + kLanes);
}
template <bool kSplit, typename T>
HWY_INLINE void Store(Pair value, T* to, Part count, bool /*stream*/ = false) {
  alignas(64) T block[kBlock];
  Store<kSplit>(value, block, Full());
  std::memcpy(to, block, static_cast<size_t>(count.size) * sizeof(T));
}

// Calls fn(i, Full or Part) for each block of [0, n).
template <typename Fn>
HWY_INLINE void ForBlocks(int64_t n, const Fn& fn) {
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) fn(i, Full());
  if (i < n) fn(i, Part{n - i});
}

// Fetches the block that begins `ahead` bytes after `from`, which need not exist. The processor's own prefetching does
// not keep up with loops that compute much for each line.
inline constexpr int64_t kFetchBytes = 2048;
template <typename T>
HWY_INLINE void FetchAhead(const T* from, int64_t ahead = kFetchBytes) {
  const auto* line = reinterpret_cast<const char*>(from) + ahead;
  for (int64_t at = 0; at < kBlock * static_cast<int64_t>(sizeof(T)); at += 64) hwy::Prefetch(line + at);
}

// Returns e^x to 2 ulp for x <= 88.3; 0 below -87.3, where results would be subnormal. NaN stays NaN.
HWY_INLINE VF Exp(VF x) {
  const auto vanishes = hn::Lt(x, Splat(-87.3F));
  // n = x / ln 2, rounded to the nearest integer by the sum, which ends in the bits of n + 127.
  const auto shifter = Splat(12582912.0F + 127.0F);  // 1.5 * 2^23
  const auto shifted = hn::MulAdd(x, Splat(1.44269504F), shifter);
  const auto n = hn::Sub(shifted, shifter);
  const auto scale = hn::BitCast(DF(), hn::ShiftLeft<23>(hn::BitCast(DI(), shifted)));  // 2^n
  // x - n ln 2, with ln 2 in two parts of which the first has few bits (Cody & Waite, 1980).
  auto r = hn::NegMulAdd(n, Splat(0.693359375F), x);
  r = hn::NegMulAdd(n, Splat(-2.12194440e-4F), r);
  // Cephes' expf (Moshier, 1992).
  auto p = hn::MulAdd(Splat(1.9875691500e-4F), r, Splat(1.3981999507e-3F));
  p = hn::MulAdd(p, r, Splat(8.3334519073e-3F));
  p = hn::MulAdd(p, r, Splat(4.1665795894e-2F));
  p = hn::MulAdd(p, r, Splat(1.6666665459e-1F));
  p = hn::MulAdd(p, r, Splat(5.0000001201e-1F));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), Splat(1.0F));
  return hn::IfThenZeroElse(vanishes, hn::Mul(p, scale));
}
// Returns e^-x, at most e^88.3: 1 / (1 + e^-x) is the logistic function. For NaN, the result is arbitrary.
HWY_INLINE VF ExpOfMinus(VF x) { return Exp(hn::Min(hn::Neg(x), Splat(88.3F))); }

// Calls fn(float, uint16_t or F16) for a floating dtype.
template <typename Fn>
void WithType(DType dtype, const Fn& fn) {
  if (dtype == DType::kF32) {
    fn(float{});
  } else if (dtype == DType::kBF16) {
    fn(uint16_t{});
  } else {
    fn(F16{});
  }
}

// The same for dtypes other than fp16.
template <typename Fn>
void WithF32OrBf16(DType dtype, const Fn& fn) {
  if (dtype == DType::kF32) {
    fn(float{});
  } else {
    fn(uint16_t{});
  }
}

// Calls fn(begin, end) over elements, in ranges that begin at multiples of kElementUnit: whole blocks, cache lines and
// Philox counters.
inline constexpr int64_t kElementUnit = 1024;
template <typename Fn>
void ParallelElements(int64_t elements, const Fn& fn) {
  ParallelFor((elements + kElementUnit - 1) / kElementUnit, 16,
              [&](int64_t begin, int64_t end) { fn(begin * kElementUnit, std::min(elements, end * kElementUnit)); });
}
// Calls fn(first, last) over rows of `cols` elements.
template <typename Fn>
void ParallelRows(int64_t rows, int64_t cols, const Fn& fn) {
  ParallelFor(rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(cols, 1)), fn);
}

// out (cols) = the sums over `parts` rows of `stride` floats, in order [+ out]. The rows hold whole blocks of Pairs.
template <bool kSplit, typename T>
HWY_NOINLINE void AddUpPartsRange(const float* from, int64_t parts, int64_t stride, T* out, int64_t begin, int64_t end,
                                  bool accumulate) {
  ForBlocks(end - begin, [&](int64_t at, auto count) HWY_ATTR {
    const int64_t i = begin + at;
    Pair sum = Load<false>(from + i, Full());
    for (int64_t p = 1; p < parts; ++p) sum = Plus(sum, Load<false>(from + p * stride + i, Full()));
    if (accumulate) sum = Plus(Load<kSplit>(out + i, count), sum);
    Store<kSplit>(sum, out + i, count);
  });
}
template <bool kSplit, typename T>
void AddUpParts(const float* from, int64_t parts, int64_t stride, T* out, int64_t cols, bool accumulate) {
  constexpr int64_t kUnit = 64;  // a multiple of kBlock
  ParallelFor((cols + kUnit - 1) / kUnit, 4, [&](int64_t begin, int64_t end) {
    AddUpPartsRange<kSplit>(from, parts, stride, out, begin * kUnit, std::min(cols, end * kUnit), accumulate);
  });
}

template <bool kSquared, typename T>
HWY_NOINLINE float SumOfRange(const T* x, int64_t begin, int64_t end) {
  constexpr bool kSplit = kAnySplit<T>;
  constexpr int64_t kPiece = 1024;  // summed in fp32; the pieces are added in double
  double total = 0;
  for (int64_t at = begin; at < end; at += kPiece) {
    Pair sum = SplatPair(0);
    ForBlocks(std::min(kPiece, end - at), [&](int64_t i, auto count) HWY_ATTR {
      FetchAhead(x + at + i);
      const Pair v = Load<kSplit>(x + at + i, count);
      sum = kSquared ? TimesPlus(v, v, sum) : Plus(sum, v);
    });
    total += static_cast<double>(Sum(sum));
  }
  return static_cast<float>(total);
}
// Returns the sum of x's elements, or of their squares, through `parts`, each of equally many elements.
template <bool kSquared>
double SumElements(const CpuRun& run, const Tensor& x, const Tensor& parts) {
  const int64_t count = parts.cols;
  const int64_t size = ((x.elements() + count - 1) / count + kElementUnit - 1) / kElementUnit * kElementUnit;
  auto* part = run.Data<float>(parts);
  WithType(x.dtype, [&](auto t) {
    const auto* data = run.Data<decltype(t)>(x);
    ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        part[p] = SumOfRange<kSquared>(data, std::min(x.elements(), p * size), std::min(x.elements(), (p + 1) * size));
      }
    });
  });
  double sum = 0;
  for (int64_t p = 0; p < count; ++p) sum += static_cast<double>(part[p]);
  return sum;
}

// Whether to write `out` past the caches: it is much larger than they are, and its lines are not read before.
inline bool Streams(const CpuRun& run, const Tensor& out) {
  constexpr int64_t kStreamBytes = int64_t{8} << 20;
  const int64_t size = SizeOf(out.dtype);
  const auto address = reinterpret_cast<uintptr_t>(run.slab) + static_cast<uintptr_t>(run.offsets[out.storage]);
  return out.bytes() >= kStreamBytes && (address + static_cast<uintptr_t>(out.offset * size)) % 64 == 0 &&
         out.row_stride * size % 64 == 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();
#endif
