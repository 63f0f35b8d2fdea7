#include "engine/precision/formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "engine/precision/tf32.h"
#include "tests/engine/precision/casts.h"

namespace ridgeline::engine {
namespace {

constexpr Format kFormats[] = {Format::kE4M3, Format::kE5M2, Format::kE2M1};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

int Codes(Format format) { return format == Format::kE2M1 ? 16 : 256; }

TEST(Formats, EveryCodeHasPyTorchsValue) {
  for (const Format format : {Format::kE4M3, Format::kE5M2}) {
    const auto values = CodeValues(format);
    ASSERT_EQ(values.size(), 256U);
    for (const Cast& cast : values) {
      const float value = Decode(format, cast.code);
      if (std::isnan(cast.value)) {
        EXPECT_TRUE(std::isnan(value)) << int{cast.code};
      } else {
        EXPECT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(cast.value)) << int{cast.code};
      }
    }
  }
}

TEST(Formats, RoundingIsPyTorchs) {
  for (const Format format : {Format::kE4M3, Format::kE5M2}) {
    const auto casts = RoundedCodes(format);
    EXPECT_GT(casts.size(), 1500U);
    for (const Cast& cast : casts) EXPECT_EQ(Encode(format, cast.value), cast.code) << cast.value;
  }
}

TEST(Formats, E2M1HasEightMagnitudes) {
  const float magnitudes[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  for (int code = 0; code < 8; ++code) {
    EXPECT_EQ(Decode(Format::kE2M1, static_cast<uint8_t>(code)), magnitudes[code]);
    EXPECT_EQ(Decode(Format::kE2M1, static_cast<uint8_t>(code | 8)), -magnitudes[code]);
  }
  EXPECT_TRUE(std::signbit(Decode(Format::kE2M1, 8)));
}

TEST(Formats, E2M1RoundsTiesToEvenCodes) {
  const struct {
    float tie;
    bool down;
    int below;  // the code below the tie
  } ties[] = {{0.25F, true, 0}, {0.75F, false, 1}, {1.25F, true, 2}, {1.75F, false, 3},
              {2.5F, true, 4},  {3.5F, false, 5},  {5, true, 6}};
  for (const auto& [tie, down, below] : ties) {
    EXPECT_EQ(Encode(Format::kE2M1, tie), down ? below : below + 1) << tie;
    EXPECT_EQ(Encode(Format::kE2M1, std::nextafter(tie, 0.0F)), below) << tie;
    EXPECT_EQ(Encode(Format::kE2M1, std::nextafter(tie, 9.0F)), below + 1) << tie;
    EXPECT_EQ(Encode(Format::kE2M1, -tie), (down ? below : below + 1) | 8) << tie;
  }
}

TEST(Formats, ACodeIsItsOwnRounding) {
  for (const Format format : kFormats) {
    for (int code = 0; code < Codes(format); ++code) {
      const float value = Decode(format, static_cast<uint8_t>(code));
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(Encode(format, value), code);
      EXPECT_EQ(Encode(format, value, 0, 16), code);
      EXPECT_EQ(Encode(format, value, 0xffff, 16), code);
    }
  }
}

TEST(Formats, TooLargeNumbersSaturate) {
  for (const Format format : kFormats) {
    const FormatInfo info = InfoOf(format);
    for (const float value : {std::nextafter(info.max, kInfinity), info.max * 1.5F, 3e38F, kInfinity}) {
      EXPECT_EQ(Encode(format, value), info.max_code);
      EXPECT_EQ(Encode(format, -value), info.max_code | info.sign_code);
      EXPECT_EQ(Encode(format, value, 0, 16), info.max_code);
      EXPECT_EQ(Encode(format, -value, 0xffff, 16), info.max_code | info.sign_code);
    }
    EXPECT_EQ(Decode(format, info.max_code), info.max);
  }
}

TEST(Formats, NanIsOneCode) {
  for (const Format format : kFormats) {
    for (const float nan : {std::nanf(""), -std::nanf("")}) {
      EXPECT_EQ(Encode(format, nan), InfoOf(format).nan_code);
      EXPECT_EQ(Encode(format, nan, 5, 9), InfoOf(format).nan_code);
    }
  }
  EXPECT_TRUE(std::isnan(Decode(Format::kE4M3, InfoOf(Format::kE4M3).nan_code)));
  EXPECT_TRUE(std::isnan(Decode(Format::kE5M2, InfoOf(Format::kE5M2).nan_code)));
}

// A number lies p of the way between two codes. The mean of n of its roundings has the variance p (1 - p) / n, in
// steps.
TEST(Formats, StochasticRoundingIsUnbiased) {
  constexpr int kDraws = 20000;
  std::mt19937 random(1);
  for (const Format format : kFormats) {
    const FormatInfo info = InfoOf(format);
    for (int code = 0; code < info.max_code; code += format == Format::kE2M1 ? 1 : 9) {
      const double low = Decode(format, static_cast<uint8_t>(code));
      const double step = Decode(format, static_cast<uint8_t>(code + 1)) - low;
      for (const double p : {0.1, 0.5, 0.8}) {
        const auto value = static_cast<float>(low + p * step);
        double sum = 0;
        for (int i = 0; i < kDraws; ++i) {
          const uint8_t rounded = Encode(format, -value, random() >> 16, 16);
          ASSERT_TRUE(rounded == (code | info.sign_code) || rounded == ((code + 1) | info.sign_code));
          sum += Decode(format, rounded);
        }
        const double error = (sum / kDraws + value) / step;
        EXPECT_LT(std::abs(error), 5 * std::sqrt(p * (1 - p) / kDraws) + 0x1p-17) << "code " << code << " and " << p;
      }
    }
  }
}

TEST(Formats, StochasticRoundingGoesUpWhereTheDrawFillsTheStep) {
  EXPECT_EQ(Encode(Format::kE2M1, 1.125F, 0xc000, 16), 3);  // a quarter of the way from 1 to 1.5
  EXPECT_EQ(Encode(Format::kE2M1, 1.125F, 0xbfff, 16), 2);
  EXPECT_EQ(Encode(Format::kE2M1, 0.25F, 0x100, 9), 1);
  EXPECT_EQ(Encode(Format::kE2M1, 0.25F, 0xff, 9), 0);
  EXPECT_EQ(Encode(Format::kE2M1, 0x0.8p-10F, 0x1ff, 9), 0);  // half of the last bit: to even
  EXPECT_EQ(Encode(Format::kE2M1, 0x1.8p-10F, 0x1fe, 9), 1);
  EXPECT_EQ(Encode(Format::kE2M1, 1e-30F, 0xffff, 16), 0);
}

TEST(Formats, E8M0IsAPowerOfTwo) {
  EXPECT_EQ(DecodeE8M0(127), 1);
  EXPECT_EQ(DecodeE8M0(0), std::ldexp(1.0F, -127));
  EXPECT_EQ(DecodeE8M0(254), std::ldexp(1.0F, 127));
  EXPECT_TRUE(std::isnan(DecodeE8M0(255)));
  for (int code = 1; code < 255; ++code) {
    const float power = DecodeE8M0(static_cast<uint8_t>(code));
    for (const ScaleRule rule : {ScaleRule::kRoundUp, ScaleRule::kFloor}) {
      EXPECT_EQ(EncodeE8M0(power, rule), code);
      EXPECT_EQ(EncodeE8M0(std::nextafter(power, 0.0F), rule), rule == ScaleRule::kRoundUp ? code : code - 1) << code;
    }
    EXPECT_EQ(EncodeE8M0(std::nextafter(power, kInfinity), ScaleRule::kFloor), code);
    EXPECT_EQ(EncodeE8M0(std::nextafter(power, kInfinity), ScaleRule::kRoundUp), std::min(code + 1, 254));
  }
}

TEST(Formats, E8M0OfTheEnds) {
  for (const ScaleRule rule : {ScaleRule::kRoundUp, ScaleRule::kFloor}) {
    EXPECT_EQ(EncodeE8M0(0, rule), 0);
    EXPECT_EQ(EncodeE8M0(kInfinity, rule), 254);
    EXPECT_EQ(EncodeE8M0(std::nanf(""), rule), 255);
  }
  EXPECT_EQ(EncodeE8M0(1e-40F, ScaleRule::kRoundUp), 1);  // subnormal: bits of the mantissa, none of the exponent
  EXPECT_EQ(EncodeE8M0(1e-40F, ScaleRule::kFloor), 0);
}

// Compares with the two neighbours among numbers of 11 significant bits, in double precision.
TEST(Tf32, RoundsToNearestAndTiesAwayFromZero) {
  const float step = std::ldexp(1.0F, -10);
  EXPECT_EQ(RoundToTf32(1 + step), 1 + step);
  EXPECT_EQ(RoundToTf32(1 + step / 2), 1 + step);
  EXPECT_EQ(RoundToTf32(-1 - step / 2), -1 - step);
  EXPECT_EQ(RoundToTf32(1 + 1.5F * step), 1 + 2 * step);
  EXPECT_EQ(RoundToTf32(std::nextafter(1 + step / 2, 0.0F)), 1);
  EXPECT_EQ(RoundToTf32(std::nextafter(2.0F, 0.0F)), 2) << "into the next exponent";
  std::mt19937 random(3);
  int differ = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    int exponent = 0;
    std::frexp(x, &exponent);
    const double unit = std::ldexp(1.0, std::max(exponent, -125) - 11);
    const double units = std::abs(double{x}) / unit;
    const double nearest = (units - std::floor(units) < 0.5 ? std::floor(units) : std::ceil(units)) * unit;
    if (!std::isfinite(x) || nearest > double{std::numeric_limits<float>::max()}) continue;
    ASSERT_EQ(double{RoundToTf32(x)}, std::copysign(nearest, double{x})) << x;
    differ += RoundToTf32(x) != x ? 1 : 0;
  }
  EXPECT_GT(differ, 90'000);
}

TEST(Tf32, HasTheRangeOfFp32) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(RoundToTf32(std::ldexp(2047.0F, 117)), std::ldexp(2047.0F, 117)) << "the largest";
  EXPECT_EQ(RoundToTf32(kLargest), kInfinity);
  EXPECT_EQ(RoundToTf32(-kLargest), -kInfinity);
  EXPECT_EQ(RoundToTf32(kInfinity), kInfinity);
  EXPECT_EQ(RoundToTf32(-kInfinity), -kInfinity);
  for (const uint32_t nan : {0x7f800001U, 0x7fc00000U, 0x7fffffffU, 0xffffffffU}) {
    EXPECT_TRUE(std::isnan(RoundToTf32(std::bit_cast<float>(nan)))) << nan;
  }
  EXPECT_EQ(RoundToTf32(4096 * kLeast), 8192 * kLeast);
  EXPECT_EQ(RoundToTf32(4095 * kLeast), 0);
  EXPECT_TRUE(std::signbit(RoundToTf32(-kLeast)));
}

}  // namespace
}  // namespace ridgeline::engine
