// The random numbers of philox.h, many at a time. Included once for each target, inside of Highway's foreach_target.h.

#include "engine/ops/simd_targets.h"

#if defined(RIDGELINE_OPS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_OPS_PHILOX_INL_H_
#undef RIDGELINE_OPS_PHILOX_INL_H_
#else
#define RIDGELINE_OPS_PHILOX_INL_H_
#endif

#include "engine/ops/philox.h"
#include "engine/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline {
namespace HWY_NAMESPACE {

using DW = hn::Repartition<uint64_t, DU>;
using VW = hn::Vec<DW>;

struct Bits {
  VU a, b;
};
struct FourBits {
  Bits rows[4];
  HWY_INLINE Bits operator[](int64_t i) const { return rows[i]; }
};

// RandomBits of a block of elements at a time.
class RandomBlocks {
 public:
  RandomBlocks(const StepInputs& inputs, uint32_t stream) : stream_(stream), step_(static_cast<uint32_t>(inputs.step)) {
    uint32_t key0 = static_cast<uint32_t>(inputs.seed);
    uint32_t key1 = static_cast<uint32_t>(inputs.seed >> 32);
    for (auto& key : keys_) {
      key[0] = key0;
      key[1] = key1;
      key0 += kPhiloxWeyl0;
      key1 += kPhiloxWeyl1;
    }
  }

  // Of elements [i, i + kBlock), as Pairs have them; i is a multiple of 4.
  template <bool kSplit>
  HWY_INLINE Bits Block(int64_t i) const {
    // Not Iota from `i`: it would go through memory, and wait there for the stores before.
    const auto words = Groups(hn::Add(hn::Set(DW(), static_cast<uint64_t>(i) / 4), hn::Iota(DW(), 0)));
    const VU even = Joined(words.c0, words.c2);
    const VU odd = Joined(words.c1, words.c3);
    if constexpr (kSplit) return {even, odd};
    alignas(64) uint32_t linear[kBlock];
    hn::StoreInterleaved2(even, odd, DU(), linear);
    return {hn::Load(DU(), linear), hn::Load(DU(), linear + kLanes)};
  }

  // Of elements first + j * stride + {0, 1, 2, 3} for the kBlock columns j of a split Pair. Both are multiples of 4,
  // and stride fits 32 bits.
  HWY_INLINE FourBits Columns(int64_t first, int64_t stride) const {
    // A group is four elements of one column: lanes are columns 0, 4, 8, …, then those after them.
    const VW lanes = hn::MulEven(hn::BitCast(DU(), hn::Iota(DW(), 0)), hn::Set(DU(), static_cast<uint32_t>(stride)));
    const auto groups = [&](int64_t j) HWY_ATTR {
      return Groups(hn::Add(hn::Set(DW(), static_cast<uint64_t>(first + j * stride) / 4), lanes));
    };
    const Words w0 = groups(0);
    const Words w1 = groups(1);
    const Words w2 = groups(2);
    const Words w3 = groups(3);
    return {{{Joined(w0.c0, w2.c0), Joined(w1.c0, w3.c0)},
             {Joined(w0.c1, w2.c1), Joined(w1.c1, w3.c1)},
             {Joined(w0.c2, w2.c2), Joined(w1.c2, w3.c2)},
             {Joined(w0.c3, w2.c3), Joined(w1.c3, w3.c3)}}};
  }

 private:
  // The words lie in the lower halves of 64-bit lanes, as do the counters: what is in the upper halves meanwhile does
  // not matter.
  struct Words {
    VU c0, c1, c2, c3;
  };
  HWY_INLINE Words Groups(VW group) const {
    const DU d;
    auto c0 = hn::BitCast(d, group);
    auto c1 = hn::BitCast(d, hn::ShiftRight<32>(group));
    auto c2 = hn::Set(d, stream_);
    auto c3 = hn::Set(d, step_);
    const auto multiplier0 = hn::Set(d, kPhiloxMultiplier0);
    const auto multiplier1 = hn::Set(d, kPhiloxMultiplier1);
    for (const auto& key : keys_) {
      const auto product0 = hn::MulEven(c0, multiplier0);
      const auto product1 = hn::MulEven(c2, multiplier1);
      c0 = hn::Xor3(hn::Shuffle2301(hn::BitCast(d, product1)), c1, hn::Set(d, key[0]));
      c1 = hn::BitCast(d, product1);
      c2 = hn::Xor3(hn::Shuffle2301(hn::BitCast(d, product0)), c3, hn::Set(d, key[1]));
      c3 = hn::BitCast(d, product0);
    }
    return {c0, c1, c2, c3};
  }
  // The lower halves of both, in turns.
  static HWY_INLINE VU Joined(VU even, VU odd) {
    return hn::OddEven(hn::BitCast(DU(), hn::ShiftLeft<32>(hn::BitCast(DW(), odd))), even);
  }

  uint32_t keys_[kPhiloxRounds][2];
  uint32_t stream_;
  uint32_t step_;
};

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline
HWY_AFTER_NAMESPACE();
#endif
