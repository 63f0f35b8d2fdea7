#include "engine/ops/cpu/quantized_rows.h"

#include <gtest/gtest.h>

#include <numeric>

#include "engine/precision/reference.h"
#include "tests/engine/ops/every_target.h"

namespace ridgeline::engine {
namespace {

class QuantizedRows : public EveryTarget {
 protected:
  void SetUp() override { hwy::GetChosenTarget().Update(GetParam().highway); }
  void TearDown() override { hwy::GetChosenTarget().Update(hwy::SupportedTargets()); }
};
RIDGELINE_ON_EVERY_INSTRUCTION_SET(QuantizedRows);

// Every code, with a separate scale for each block.
ReferenceTensor EveryCode(const Quantizer& quantizer, int64_t outer, int64_t inner) {
  ReferenceTensor q = {quantizer, outer, inner, {}, {}, 1, 0};
  q.codes.resize(static_cast<size_t>(outer * quantizer.CodeCols(inner)));
  q.scales.resize(static_cast<size_t>(outer * quantizer.ScaleCols(inner)));
  for (size_t i = 0; i < q.codes.size(); ++i) q.codes[i] = static_cast<uint8_t>(i * 7);
  for (size_t i = 0; i < q.scales.size(); ++i) q.scales[i] = static_cast<uint8_t>(i * 3 + 1);
  return q;
}

TEST_P(QuantizedRows, ArePartsOfTheReference) {
  const Quantizer quantizers[] = {{Format::kE4M3, Scaling::kCurrent},
                                  {Format::kE5M2, Scaling::kCurrent},
                                  {Format::kE4M3, Scaling::kBlock32},
                                  {Format::kE2M1, Scaling::kBlock16},
                                  {Format::kE2M1, Scaling::kBlock16x16}};
  constexpr int64_t kOuter = 20, kInner = 1200;
  for (const Quantizer& quantizer : quantizers) {
    const ReferenceTensor q = EveryCode(quantizer, kOuter, kInner);
    const auto expected = DequantizeReference(q);
    const int64_t padded = quantizer.PaddedInner(kInner);
    const QuantizedData data = {quantizer, q.codes.data(), q.scales.data(), quantizer.CodeCols(kInner),
                                quantizer.ScaleCols(kInner)};
    const struct {
      int64_t outer, outer_count, inner, inner_count;
    } parts[] = {{0, kOuter, 0, padded}, {3, 2, 32, 64}, {19, 1, 608, 1}, {5, 4, 1184, padded - 1184}, {0, 3, 96, 777}};
    for (const auto& part : parts) {
      const int64_t stride = part.inner_count + 5;
      std::vector<float> wide(static_cast<size_t>(part.outer_count * stride), 77.0F);
      std::vector<uint16_t> narrow(wide.size(), 77);
      DequantizePart(data, part.outer, part.outer_count, part.inner, part.inner_count, wide.data(), stride);
      DequantizePart(data, part.outer, part.outer_count, part.inner, part.inner_count, narrow.data(), stride);
      for (int64_t r = 0; r < part.outer_count; ++r) {
        for (int64_t c = 0; c < stride; ++c) {
          const auto at = static_cast<size_t>(r * stride + c);
          if (c >= part.inner_count) {
            ASSERT_EQ(wide[at], 77);
            ASSERT_EQ(narrow[at], 77);
            continue;
          }
          const float value = expected[static_cast<size_t>((part.outer + r) * padded + part.inner + c)];
          if (std::isnan(value)) {
            ASSERT_TRUE(std::isnan(wide[at]));
            ASSERT_TRUE(std::isnan(Bf16Value(narrow[at])));
          } else {
            ASSERT_EQ(wide[at], value);
            ASSERT_EQ(narrow[at], Bf16Bits(value));
            // Exact unless subnormal, or beyond bf16's range.
            const float magnitude = std::abs(value);
            if (magnitude > 2e-38F && magnitude < 3e38F) {
              ASSERT_EQ(Bf16Value(narrow[at]), value);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ridgeline::engine
