#include "engine/ops/philox.h"

#include <gtest/gtest.h>

namespace ridgeline::engine {
namespace {

// The known answers of Random123 (kat_vectors, philox4x32 10).
TEST(Philox, GivesRandom123sKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, NamesEveryElementOfEveryStreamAndStep) {
  const int64_t element = (int64_t{1} << 35) + 6;
  EXPECT_EQ(RandomBits(0x299f31d0a4093822, 9, 5, element), Philox4x32({1, 2, 5, 9}, {0xa4093822, 0x299f31d0})[2]);
  EXPECT_NE(RandomBits(1, 1, 1, 0), RandomBits(2, 1, 1, 0));
  EXPECT_NE(RandomBits(1, 1, 1, 0), RandomBits(1, 2, 1, 0));
  EXPECT_NE(RandomBits(1, 1, 1, 0), RandomBits(1, 1, 2, 0));
  EXPECT_NE(RandomBits(1, 1, 1, 0), RandomBits(1, 1, 1, 1));
}

TEST(Philox, RoundingBitsAreHalvesOfWords) {
  const uint32_t word = RandomBits(7, 2, 3, 21);
  EXPECT_EQ(RoundingBits(7, 2, 3, 42, 16), word & 0xffff);
  EXPECT_EQ(RoundingBits(7, 2, 3, 43, 16), word >> 16);
}

TEST(Philox, ShortRoundingBitsAreNineOfAHalf) {
  const uint32_t word = RandomBits(7, 2, 3, 21);
  EXPECT_EQ(RoundingBits(7, 2, 3, 84, 9), word & 0x1ff);
  EXPECT_EQ(RoundingBits(7, 2, 3, 85, 9), word >> 7 & 0x1ff);
  EXPECT_EQ(RoundingBits(7, 2, 3, 86, 9), word >> 16 & 0x1ff);
  EXPECT_EQ(RoundingBits(7, 2, 3, 87, 9), word >> 23);
}

TEST(Philox, DropoutsThreshold) {
  EXPECT_EQ(DropoutThreshold(0), 0U);
  EXPECT_EQ(DropoutThreshold(0.5), 0x80000000U);
  EXPECT_LE(DropoutThreshold(0.9999999999), 0xffffffffU);
}

}  // namespace
}  // namespace ridgeline::engine
