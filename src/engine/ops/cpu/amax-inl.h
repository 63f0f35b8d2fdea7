// The largest magnitudes of elements, as their bits: compared as integers (bf16 in 16 bits), a NaN is larger than all
// numbers. Included once for each target, inside of Highway's foreach_target.h.

#include "engine/ops/cpu/simd_targets.h"

#if defined(RIDGELINE_OPS_AMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_OPS_AMAX_INL_H_
#undef RIDGELINE_OPS_AMAX_INL_H_
#else
#define RIDGELINE_OPS_AMAX_INL_H_
#endif

#include <bit>

#include "engine/ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

// The largest magnitudes of rows of kSize elements.
template <typename T, int64_t kSize = kBlock>
class Amax {
  using Word = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
  using D = hn::CappedTag<Word, kSize>;
  static constexpr int64_t kWords = static_cast<int64_t>(hn::MaxLanes(D()));
  static constexpr int64_t kVectors = kSize / kWords;

 public:
  using D16 = hn::FixedTag<Word, 16 / sizeof(Word)>;

  HWY_INLINE Amax() {
    for (auto& max : max_) max = hn::Zero(D());
  }
  HWY_INLINE void Add(const T* row) {
    for (int64_t v = 0; v < kVectors; ++v) {
      const auto bits = hn::LoadU(D(), reinterpret_cast<const Word*>(row) + v * kWords);
      max_[v] = hn::Max(max_[v], hn::And(bits, hn::Set(D(), static_cast<Word>(static_cast<Word>(-1) >> 1))));
    }
  }
  // The largest of all.
  HWY_INLINE float Largest() const {
    const uint32_t bits = hn::GetLane(hn::MaxOfLanes(D16(), Folded()));
    return std::bit_cast<float>(bits << (32 - 8 * sizeof(T)));
  }
  // The largest of each column.
  HWY_INLINE Pair Columns() const {
    static_assert(kSize == kBlock);
    alignas(64) T block[kBlock];
    for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(max_[v], D(), reinterpret_cast<Word*>(block) + v * kWords);
    return Load<true>(block, Full());
  }
  // The largest of columns whose distance is a multiple of 16 bytes.
  HWY_INLINE hn::Vec<D16> Folded() const {
    auto max = max_[0];
    for (int64_t v = 1; v < kVectors; ++v) max = hn::Max(max, max_[v]);
    return Halved(D(), max);
  }

 private:
  template <typename Any>
  static HWY_INLINE hn::Vec<D16> Halved(Any d, hn::Vec<Any> max) {
    if constexpr (hn::MaxLanes(d) == hn::MaxLanes(D16())) {
      return max;
    } else {
      const hn::Half<Any> half;
      return Halved(half, hn::Max(hn::LowerHalf(half, max), hn::UpperHalf(half, max)));
    }
  }

  hn::Vec<D> max_[kVectors];
};

// Folds a and b: alternates their lanes, as wide as d's, and takes the larger of a lower and an upper half's lane.
template <typename D, typename V>
HWY_INLINE V FoldedInTurns(D d, V a, V b) {
  const hn::DFromV<V> lanes;
  const auto low = hn::InterleaveLower(d, hn::BitCast(d, a), hn::BitCast(d, b));
  const auto high = hn::InterleaveUpper(d, hn::BitCast(d, a), hn::BitCast(d, b));
  return hn::Max(hn::BitCast(lanes, low), hn::BitCast(lanes, high));
}
template <typename V>
HWY_INLINE V LargestOfFour(const V* v) {
  const hn::DFromV<V> lanes;
  const hn::RepartitionToWide<decltype(lanes)> wide;
  return FoldedInTurns(wide, FoldedInTurns(lanes, v[0], v[1]), FoldedInTurns(lanes, v[2], v[3]));
}
// to[b] = the largest lane of v[b], for as many vectors as 16 bytes have lanes: 4 of fp32, 8 of bf16.
template <typename V>
HWY_INLINE void StoreLargest(const V (&v)[4], float* to) {
  const hn::DFromV<V> d;
  hn::StoreU(LargestOfFour(v), d, reinterpret_cast<uint32_t*>(to));
}
template <typename V>
HWY_INLINE void StoreLargest(const V (&v)[8], float* to) {
  const hn::DFromV<V> d;
  const V largest = FoldedInTurns(hn::FixedTag<uint64_t, 2>(), LargestOfFour(v), LargestOfFour(v + 4));
  auto* words = reinterpret_cast<uint16_t*>(to);
  hn::StoreU(hn::InterleaveLower(d, hn::Zero(d), largest), d, words);
  hn::StoreU(hn::InterleaveUpper(d, hn::Zero(d), largest), d, words + 8);
}

// amaxes[b] = the amax of the b-th group of kSize of the n elements.
template <int64_t kSize, typename T>
HWY_INLINE void BlockAmaxes(const T* x, int64_t n, float* amaxes) {
  constexpr int64_t kBlocks = 16 / sizeof(T);
  int64_t i = 0;
  for (; i + kBlocks * kSize <= n; i += kBlocks * kSize) {
    hn::Vec<typename Amax<T, kSize>::D16> v[kBlocks];
    HWY_UNROLL(8)
    for (int64_t b = 0; b < kBlocks; ++b) {
      Amax<T, kSize> amax;
      amax.Add(x + i + b * kSize);
      v[b] = amax.Folded();
    }
    StoreLargest(v, amaxes + i / kSize);
  }
  for (; i < n; i += kSize) {
    Amax<T, kSize> amax;
    amax.Add(x + i);
    amaxes[i / kSize] = amax.Largest();
  }
}

// The larger of two amaxes.
inline float LargerAmax(float a, float b) {
  return std::bit_cast<float>(std::max(std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b)));
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();
#endif
