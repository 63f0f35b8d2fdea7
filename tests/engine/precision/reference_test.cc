// The reference quantizers, compared with numbers worked out by hand.
#include "engine/precision/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace ridgeline::engine {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr Quantizer kFp8 = {Format::kE4M3, Scaling::kCurrent};
constexpr Quantizer kMx = {Format::kE4M3, Scaling::kBlock32};
constexpr Quantizer kNv = {Format::kE2M1, Scaling::kBlock16};
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> Normal(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

TEST(Reference, ValidQuantizersAreTheRecipes) {
  EXPECT_TRUE(kFp8.valid());
  EXPECT_TRUE(kMx.valid());
  EXPECT_TRUE((Quantizer{Format::kE2M1, Scaling::kBlock16, Rounding::kStochastic, true}.valid()));
  EXPECT_FALSE((Quantizer{Format::kE2M1, Scaling::kCurrent}.valid()));
  EXPECT_FALSE((Quantizer{Format::kE2M1, Scaling::kBlock16x16, Rounding::kNearest, true}.valid()));
  EXPECT_FALSE((Quantizer{Format::kE5M2, Scaling::kCurrent, Rounding::kStochastic}.valid()));
  EXPECT_TRUE((Quantizer{Format::kE4M3, Scaling::kDelayed, Rounding::kStochastic}.valid()));
  EXPECT_TRUE((Quantizer{Format::kE2M1, Scaling::kBlock16x16, Rounding::kStochastic}.valid()));
}

TEST(Reference, CurrentScalingBringsTheLargestTo448) {
  const auto q = QuantizeReference(kFp8, std::vector<float>{1, -2, 0.5F, 0}, 2, 2);
  EXPECT_EQ(q.amax, 2);
  EXPECT_EQ(q.tensor_scale, 1 / 224.0F);
  EXPECT_THAT(DequantizeReference(q), ElementsAre(1, -2, 0.5F, 0));
  EXPECT_EQ(q.codes[1], 0xfe);
}

TEST(Reference, CurrentScaleIsOneWithoutAUsefulAmax) {
  for (const float value : {0.0F, kInf, std::nanf("")}) {
    const auto q = QuantizeReference(kFp8, std::vector<float>{value, 3}, 1, 2);
    EXPECT_EQ(q.tensor_scale, value == 0 ? 1 / (448 / 3.0F) : 1) << value;
  }
  const auto zeros = QuantizeReference(kFp8, std::vector<float>(4), 2, 2);
  EXPECT_EQ(zeros.tensor_scale, 1);
  EXPECT_THAT(zeros.codes, Each(0));
}

TEST(Reference, TinyAmaxesDoNotOverflowTheScale) {
  const auto q = QuantizeReference(kFp8, std::vector<float>{1e-39F, 0}, 1, 2);
  EXPECT_EQ(q.tensor_scale, 1 / std::numeric_limits<float>::max());
  EXPECT_EQ(q.codes[1], 0);
}

TEST(Reference, DelayedScalingTakesTheScaleItIsGiven) {
  const auto q = QuantizeReference({Format::kE5M2, Scaling::kDelayed}, std::vector<float>{1, -3e4F}, 1, 2, 4);
  EXPECT_EQ(q.tensor_scale, 0.25F);
  EXPECT_EQ(q.amax, 3e4F);
  EXPECT_THAT(DequantizeReference(q), ElementsAre(1, -57344 / 4.0F));  // saturated
}

TEST(Reference, MxScalesArePowersOfTwo) {
  std::vector<float> x(64, 0.0F);
  x[3] = 448;  // exactly representable at scale 1
  x[32] = 449;
  auto q = QuantizeReference(kMx, x, 1, 64);
  EXPECT_THAT(q.scales, ElementsAre(127, 128));
  EXPECT_EQ(q.codes[3], 0x7e);
  EXPECT_EQ(DequantizeReference(q)[32], 448);
  // The OCP rule: the largest power of two in 448 is 2^8, and so it is in 511, which then saturates.
  x[32] = 511;
  Quantizer floor = kMx;
  floor.scale_rule = ScaleRule::kFloor;
  q = QuantizeReference(floor, x, 1, 64);
  EXPECT_THAT(q.scales, ElementsAre(127, 127));
  EXPECT_EQ(DequantizeReference(q)[32], 448);
}

TEST(Reference, MxBlocksArePaddedWithZeros) {
  const auto q = QuantizeReference(kMx, std::vector<float>(2 * 33, 1.0F), 2, 33);
  ASSERT_EQ(q.codes.size(), 2U * 64);
  ASSERT_EQ(q.scales.size(), 4U);
  const auto back = DequantizeReference(q);
  for (size_t i = 0; i < back.size(); ++i) EXPECT_EQ(back[i], i % 64 < 33 ? 1 : 0) << i;
}

TEST(Reference, MxMarksABlockWithNan) {
  std::vector<float> x(64, 1.0F);
  x[5] = std::nanf("");
  const auto q = QuantizeReference(kMx, x, 1, 64);
  EXPECT_EQ(q.scales[0], 255);
  EXPECT_EQ(q.codes[0], 0x7f);
  EXPECT_EQ(DequantizeReference(q)[32], 1);
}

TEST(Reference, Nvfp4ScalesBlocksAndTheTensor) {
  std::vector<float> x(32, 0.0F);
  x[0] = 6;
  x[1] = -3;
  x[16] = 0.75F;
  const auto q = QuantizeReference(kNv, x, 1, 32);
  EXPECT_EQ(q.tensor_scale, 1 / 448.0F);  // 448 * 6 / 6
  EXPECT_EQ(Decode(Format::kE4M3, q.scales[0]), 448);
  EXPECT_EQ(Decode(Format::kE4M3, q.scales[1]), 56);  // 0.75 * 448 / 6
  EXPECT_EQ(q.codes[0], 0xd7);                        // -3 above, 6 below
  EXPECT_EQ(q.codes[8], 0x07);
  const auto back = DequantizeReference(q);
  EXPECT_FLOAT_EQ(back[0], 6);
  EXPECT_FLOAT_EQ(back[1], -3);
  EXPECT_FLOAT_EQ(back[16], 0.75F);
}

TEST(Reference, Nvfp4BlocksFarBelowTheTensorsAmaxVanish) {
  std::vector<float> x(32, 0.0F);
  x[0] = 1e6F;
  x[20] = -1e-6F;
  const auto q = QuantizeReference(kNv, x, 1, 32);
  EXPECT_EQ(q.scales[1], 0);
  EXPECT_EQ(q.codes[10], 0x08);  // -0
  EXPECT_EQ(DequantizeReference(q)[20], 0);
}

TEST(Reference, SquareBlocksShareAScaleAndTranspose) {
  const Quantizer square = {Format::kE2M1, Scaling::kBlock16x16};
  const int64_t rows = 35, cols = 20;
  const auto x = Normal(rows * cols, 3);
  std::vector<float> transposed(x.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      transposed[static_cast<size_t>(c * rows + r)] = x[static_cast<size_t>(r * cols + c)];
    }
  }
  const auto by_row = QuantizeReference(square, x, rows, cols);
  const auto by_col = QuantizeReference(square, transposed, cols, rows);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t block = 0; block < 2; ++block) {
      EXPECT_EQ(by_row.scales[static_cast<size_t>(r * 2 + block)],
                by_row.scales[static_cast<size_t>(r / 16 * 32 + block)]);
    }
  }
  const auto forward = DequantizeReference(by_row);
  const auto backward = DequantizeReference(by_col);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      ASSERT_EQ(forward[static_cast<size_t>(r * 32 + c)], backward[static_cast<size_t>(c * 48 + r)]);
    }
  }
}

// Sylvester's H: the sign of element (i, j) is the parity of the bits that i and j share.
TEST(Reference, HadamardIsItsMatrixAndOrthogonal) {
  double matrix[16][16];
  for (unsigned i = 0; i < 16; ++i) {
    for (unsigned j = 0; j < 16; ++j) {
      const double sign = __builtin_parity(i & j) != 0 ? -1 : 1;
      matrix[i][j] = static_cast<double>(kHadamardSigns[i]) * sign / 4;
    }
  }
  std::array<std::array<float, 16>, 16> rows;
  for (size_t i = 0; i < 16; ++i) {
    std::array<float, 16> unit = {};
    unit[i] = 1;
    rows[i] = HadamardReference(unit);
    for (size_t j = 0; j < 16; ++j) EXPECT_EQ(rows[i][j], matrix[i][j]);
  }
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 0; j < 16; ++j) {
      float dot = 0;
      for (size_t k = 0; k < 16; ++k) dot += rows[i][k] * rows[j][k];
      EXPECT_EQ(dot, i == j ? 1 : 0);
    }
  }
}

// Products of transformed operands equal products of the operands, over the padding too.
TEST(Reference, HadamardLeavesProductsAlone) {
  const Quantizer transformed = {Format::kE2M1, Scaling::kBlock16, Rounding::kNearest, true};
  const int64_t inner = 40;
  std::vector<float> x(static_cast<size_t>(inner), 0.0F), y = x;
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  y[33] = 4;
  y[39] = -2;
  const auto a = DequantizeReference(QuantizeReference(transformed, x, 1, inner));
  const auto b = DequantizeReference(QuantizeReference(transformed, y, 1, inner));
  double product = 0, expected = 0;
  for (size_t i = 0; i < a.size(); ++i) product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  for (size_t i = 0; i < x.size(); ++i) expected += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  EXPECT_NEAR(product, expected, 1.5);  // with the error of 4 bits: 1/6 of 3 at most for an element of 16
}

TEST(Reference, StochasticRoundingTakesTheElementsDraw) {
  const Quantizer quantizer = {Format::kE2M1, Scaling::kBlock16, Rounding::kStochastic};
  const auto x = Normal(3 * 20, 8);
  std::vector<int64_t> asked;
  QuantizeReference(quantizer, x, 3, 20, 1, [&](int64_t element) {
    asked.push_back(element);
    return 0U;
  });
  ASSERT_EQ(asked.size(), 96U);
  for (size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(asked[i], static_cast<int64_t>(i));
}

// Rows without blocks begin at a multiple of 16 draws, so that vectors of them can be drawn at once.
TEST(Reference, StochasticRowsDrawWholeGroups) {
  const Quantizer quantizer = {Format::kE4M3, Scaling::kCurrent, Rounding::kStochastic};
  std::vector<int64_t> asked;
  const auto q = QuantizeReference(quantizer, std::vector<float>{448, 1.1F, -1.1F, 448}, 2, 2, 1, [&](int64_t element) {
    asked.push_back(element);
    return element == 1 ? 0xffffU : 0U;
  });
  EXPECT_THAT(asked, ElementsAre(0, 1, 16, 17));
  const auto back = DequantizeReference(q);
  EXPECT_GT(back[1], 1.1F);  // rounded up
  EXPECT_LT(back[1], 1.25F);
  EXPECT_GT(back[2], -1.1F);  // rounded towards zero
  EXPECT_EQ(back[3], 448);    // the largest
}

}  // namespace
}  // namespace ridgeline::engine
