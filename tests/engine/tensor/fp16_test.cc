#include "engine/tensor/fp16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ridgeline::engine {
namespace {

// Straight from IEEE 754: sign, 5 bits of exponent, 10 of mantissa.
float Value(int bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const float size = exponent == 31  ? (mantissa == 0 ? std::numeric_limits<float>::infinity()
                                                      : std::numeric_limits<float>::quiet_NaN())
                     : exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                     : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

TEST(Fp16, EveryValueIsReadAndWritten) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const float value = FromFp16(static_cast<uint16_t>(bits));
    if (std::isnan(Value(bits))) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(FromFp16(ToFp16(value)))) << bits;
      continue;
    }
    ASSERT_EQ(value, Value(bits)) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    ASSERT_EQ(ToFp16(value), bits);
  }
}

TEST(Fp16, RoundsToTheNearestAndTiesToEven) {
  for (int bits = 0; bits < 0x7bff; ++bits) {  // between each number and the next
    const float low = Value(bits);
    const float high = Value(bits + 1);
    const float middle = low + (high - low) / 2;
    const int even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(ToFp16(middle), even) << bits;
    ASSERT_EQ(ToFp16(std::nextafter(middle, low)), bits) << bits;
    ASSERT_EQ(ToFp16(std::nextafter(middle, high)), bits + 1) << bits;
    ASSERT_EQ(ToFp16(-middle), even | 0x8000) << bits;
  }
}

TEST(Fp16, OverflowsToInfinity) {
  EXPECT_EQ(ToFp16(65519.996F), 0x7bff);
  EXPECT_EQ(ToFp16(65520), 0x7c00);
  EXPECT_EQ(ToFp16(-1e30F), 0xfc00);
  EXPECT_EQ(ToFp16(std::numeric_limits<float>::infinity()), 0x7c00);
}

}  // namespace
}  // namespace ridgeline::engine
