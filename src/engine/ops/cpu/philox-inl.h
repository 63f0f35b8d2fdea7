// The random numbers of philox.h, several at a time. Included once for each target, inside of Highway's
// foreach_target.h.

#include "engine/ops/cpu/simd_targets.h"

#if defined(RIDGELINE_OPS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_OPS_PHILOX_INL_H_
#undef RIDGELINE_OPS_PHILOX_INL_H_
#else
#define RIDGELINE_OPS_PHILOX_INL_H_
#endif

#include <array>

#include "engine/ops/cpu/simd-inl.h"
#include "engine/ops/philox.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

using DW = hn::Repartition<uint64_t, DU>;
using VW = hn::Vec<DW>;

struct Bits {
  VU a, b;
};
// Bits that round the two halves of a Pair: kBits in each lane.
template <int kBits>
struct Draws {
  VU a, b;
};
template <int64_t kRows, int kBits>
struct RoundingRows {
  Draws<kBits> rows[kRows];
  HWY_INLINE Draws<kBits> operator[](int64_t i) const { return rows[i]; }
};
// Halves of words that neighbours share: one half for the two elements of a lane. RoundingBits of 9 bits.
using DShared = hn::Rebind<uint16_t, DU>;
using VShared = hn::Vec<DShared>;
HWY_INLINE Draws<9> DrawsOf(VShared shared) {
  const auto words = hn::PromoteTo(DU(), shared);
  return {hn::And(words, hn::Set(DU(), 0x1ffU)), hn::ShiftRight<7>(words)};
}

// RandomBits of a block of elements at a time.
class RandomBlocks {
 public:
  // `first`: the position in the stream of Block's element 0.
  RandomBlocks(const StepInputs& inputs, uint32_t stream, int64_t first = 0)
      : base_(first - first % 4),
        shift_(static_cast<size_t>(first % 4)),
        stream_(stream),
        step_(static_cast<uint32_t>(inputs.step)) {
    uint32_t key0 = static_cast<uint32_t>(inputs.seed);
    uint32_t key1 = static_cast<uint32_t>(inputs.seed >> 32);
    for (auto& key : keys_) {
      key[0] = key0;
      key[1] = key1;
      key0 += kPhiloxWeyl0;
      key1 += kPhiloxWeyl1;
    }
  }

  // Returns the bits of elements [i, i + kBlock) in the order of Pairs. REQUIRES: i is a multiple of 4.
  template <bool kSplit>
  HWY_INLINE Bits Block(int64_t i) const {
    if (HWY_LIKELY(shift_ == 0)) return AlignedBlock<kSplit>(base_ + i);
    alignas(64) uint32_t linear[2 * kBlock];  // spans two blocks of the generator
    const Bits low = AlignedBlock<true>(base_ + i);
    const Bits high = AlignedBlock<true>(base_ + i + kBlock);
    hn::StoreInterleaved2(low.a, low.b, DU(), linear);
    hn::StoreInterleaved2(high.a, high.b, DU(), linear + kBlock);
    if constexpr (kSplit) {
      Bits shifted;
      hn::LoadInterleaved2(DU(), linear + shift_, shifted.a, shifted.b);
      return shifted;
    } else {
      return {hn::LoadU(DU(), linear + shift_), hn::LoadU(DU(), linear + shift_ + kLanes)};
    }
  }

  template <bool kSplit>
  HWY_INLINE Bits AlignedBlock(int64_t i) const {
    // Not Iota from `i`, which would go through memory, and wait there for earlier stores.
    const auto words = Groups(hn::Add(hn::Set(DW(), static_cast<uint64_t>(i) / 4), hn::Iota(DW(), 0)));
    const VU even = Joined(words.c0, words.c2);
    const VU odd = Joined(words.c1, words.c3);
    if constexpr (kSplit) return {even, odd};
    alignas(64) uint32_t linear[kBlock];
    hn::StoreInterleaved2(even, odd, DU(), linear);
    return {hn::Load(DU(), linear), hn::Load(DU(), linear + kLanes)};
  }

  // Returns 16-bit RoundingBits of elements [i, i + 2 * kBlock), as two split Pairs. REQUIRES: i is a multiple of 8.
  HWY_INLINE RoundingRows<2, 16> RoundingBlocks(int64_t i) const {
    const Bits words = RowWords(i / 8);
    return {{LowAndHigh(words.a), LowAndHigh(words.b)}};
  }

  // The 9-bit RoundingBits that elements [i, i + 4 * kBlock), as four split Pairs, share. REQUIRES: i is a multiple of
  // 16.
  struct SharedRows {
    VShared rows[4];
  };
  HWY_INLINE SharedRows SharedBlocks(int64_t i) const {
    const Bits words = RowWords(i / 16);
    const auto first = hn::BitCast(DH(), words.a);
    const auto second = hn::BitCast(DH(), words.b);
    return {{hn::LowerHalf(DShared(), first), hn::UpperHalf(DShared(), first), hn::LowerHalf(DShared(), second),
             hn::UpperHalf(DShared(), second)}};
  }

  // Returns 16-bit RoundingBits of elements first + j * stride + r for rows r in [0, 8) and the kBlock columns j of
  // split Pairs. REQUIRES: both are multiples of 8, and stride / 8 fits 32 bits.
  HWY_INLINE RoundingRows<8, 16> RoundingColumns(int64_t first, int64_t stride) const {
    const ColumnWords words = WordsOfColumns(first / 8, stride / 8);
    RoundingRows<8, 16> result;
    HWY_UNROLL(4)
    for (int64_t i = 0; i < 4; ++i) {
      const Draws<16> a = LowAndHigh(words.rows[i].a);
      const Draws<16> b = LowAndHigh(words.rows[i].b);
      result.rows[2 * i] = {a.a, b.a};
      result.rows[2 * i + 1] = {a.b, b.b};
    }
    return result;
  }

  // The four words of each of the groups first + j * stride, for the kBlock columns j of split Pairs. For 9-bit
  // RoundingBits, the i-th word has those of rows 4 i … 4 i + 3.
  struct ColumnWords {
    Bits rows[4];
  };
  HWY_INLINE ColumnWords WordsOfColumns(int64_t first, int64_t stride) const {
    // Lanes are columns 0, 4, 8, …, then those after them.
    const auto lane = hn::BitCast(DU(), hn::Iota(DW(), 0));
    const VW lanes = hn::MulEven(lane, hn::Set(DU(), static_cast<uint32_t>(4 * stride)));
    const auto groups = [&](int64_t j) HWY_ATTR {
      return Groups(hn::Add(hn::Set(DW(), static_cast<uint64_t>(first + j * stride)), lanes));
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
  // The words lie in the lower halves of 64-bit lanes, as do the counters. The contents of the upper halves do not
  // matter.
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
  // Returns the words, in order, of as many groups as there are 64-bit lanes.
  HWY_INLINE Bits RowWords(int64_t group) const {
    // Groups are ordered so that interleaving puts the words of each together.
    alignas(64) static constexpr auto kOrder = [] {
      std::array<uint64_t, kLanes / 2> order{};
      for (size_t lane = 0; lane < order.size(); ++lane) order[lane] = lane / 2 + lane % 2 * (order.size() / 2);
      return order;
    }();
    const auto words = Groups(hn::Add(hn::Set(DW(), static_cast<uint64_t>(group)), hn::Load(DW(), kOrder.data())));
    const auto first = hn::BitCast(DW(), Joined(words.c0, words.c1));
    const auto second = hn::BitCast(DW(), Joined(words.c2, words.c3));
    return {hn::BitCast(DU(), hn::InterleaveLower(DW(), first, second)),
            hn::BitCast(DU(), hn::InterleaveUpper(DW(), first, second))};
  }
  // The lower halves of both, alternating.
  static HWY_INLINE VU Joined(VU even, VU odd) {
    return hn::OddEven(hn::BitCast(DU(), hn::ShiftLeft<32>(hn::BitCast(DW(), odd))), even);
  }
  static HWY_INLINE Draws<16> LowAndHigh(VU words) {
    return {hn::And(words, hn::Set(DU(), 0xffffU)), hn::ShiftRight<16>(words)};
  }

  int64_t base_;  // the stream's beginning for Block, and the offset within a group of four
  size_t shift_;
  uint32_t keys_[kPhiloxRounds][2];
  uint32_t stream_;
  uint32_t step_;
};

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();
#endif
