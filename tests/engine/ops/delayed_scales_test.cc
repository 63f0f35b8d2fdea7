// How the scales of delayed scaling follow the values seen.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "engine/ops/quantize.h"
#include "tests/engine/ops/every_target.h"

namespace ridgeline::engine {
namespace {

class DelayedScales : public EveryTarget {
 protected:
  OpKernels table_ = Kernels({RIDGELINE_FAMILY(Quantize)});

  // The scales after each of `amaxes`, of one slot.
  std::vector<float> ScalesAfter(const std::vector<float>& amaxes, int64_t length, Format format = Format::kE4M3) {
    std::vector<float> history(static_cast<size_t>(length), 0.0F);
    float scale = 1;
    std::vector<float> scales;
    for (const float amax : amaxes) {
      OpRunner runner;
      const Tensor h = runner.Make(DType::kF32, 1, length, history);
      const Tensor s = runner.Make(DType::kF32, 1, 1, {scale});
      const Tensor a = runner.Make(DType::kF32, 1, 1, {amax});
      UpdateDelayedScales(runner.trace, h, s, a, format);
      runner.Run(table_);
      history = runner.Read(h);
      scale = runner.Read(s)[0];
      EXPECT_EQ(runner.Read(a)[0], 0);
      scales.push_back(scale);
    }
    return scales;
  }
};
RIDGELINE_ON_EVERY_DEVICE(DelayedScales);

TEST_P(DelayedScales, FollowTheLargestOfTheHistory) {
  EXPECT_EQ(ScalesAfter({2, 8, 4, 4, 4, 1}, 3), (std::vector<float>{224, 56, 56, 56, 112, 112}));
  EXPECT_EQ(ScalesAfter({2, 8, 4}, 1, Format::kE5M2), (std::vector<float>{28672, 7168, 14336}));
}

TEST_P(DelayedScales, StayWhereTheHistoryIsOfNoUse) {
  EXPECT_EQ(ScalesAfter({0, 0}, 4), (std::vector<float>{1, 1}));
  EXPECT_EQ(ScalesAfter({2, std::numeric_limits<float>::infinity(), 2, 2}, 2),
            (std::vector<float>{224, 224, 224, 224}));
  EXPECT_EQ(ScalesAfter({2, std::nanf(""), 4, 4}, 2), (std::vector<float>{224, 224, 224, 112}));
  EXPECT_EQ(ScalesAfter({1e-39F}, 2), (std::vector<float>{std::numeric_limits<float>::max()}));
}

TEST_P(DelayedScales, UpdatesEverySlot) {
  constexpr int64_t kSlots = 200;
  OpRunner runner;
  std::vector<float> amaxes(kSlots);
  std::iota(amaxes.begin(), amaxes.end(), 1.0F);
  const Tensor h = runner.Make(DType::kF32, kSlots, 4, std::vector<float>(kSlots * 4));
  const Tensor s = runner.Make(DType::kF32, kSlots, 1, std::vector<float>(kSlots, 1.0F));
  const Tensor a = runner.Make(DType::kF32, kSlots, 1, amaxes);
  UpdateDelayedScales(runner.trace, h, s, a, Format::kE4M3);
  runner.Run(table_);
  const auto scales = runner.Read(s);
  for (size_t slot = 0; slot < kSlots; ++slot) {
    EXPECT_EQ(scales[slot], 448 / amaxes[slot]);
    EXPECT_EQ(runner.Read(h)[slot * 4 + 3], amaxes[slot]);
  }
}

}  // namespace
}  // namespace ridgeline::engine
