#include "run/repeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/step_figures.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kWarmup = 1;

// A run of a warm-up step and measured ones, of 1000 tokens each.
RunResult RunOf(std::vector<int64_t> steps_ns, int64_t repeat = 1) {
  RunResult result;
  result.status = RunStatus::kOk;
  result.repeat = repeat;
  result.tokens_per_step = 1000;
  result.step_ns.all_ns = std::move(steps_ns);
  FillStepFigures({result.step_ns.all_ns.begin() + kWarmup, result.step_ns.all_ns.end()}, result);
  return result;
}

TEST(Repeats, AreOneMeasurement) {
  RunResult first = RunOf({1'000'000, 100'000, 120'000});
  first.memory.rss_peak_bytes = 7;
  RunResult second = RunOf({2'000'000, 200'000, 110'000});
  second.memory.rss_peak_bytes = 5;
  second.memory.device_peak_bytes = 3;
  AddEarlierRepeats(first, kWarmup, second);
  EXPECT_EQ(second.repeat, 2);
  EXPECT_THAT(second.step_ns.all_ns, ElementsAre(1'000'000, 100'000, 120'000, 200'000, 110'000));
  EXPECT_EQ(second.step_ns.median_ns, 115'000);
  EXPECT_DOUBLE_EQ(second.throughput.steady_tokens_per_s, 1000 / 115e-6);
  EXPECT_DOUBLE_EQ(second.throughput.cold_tokens_per_s, 6000 / 3530e-6) << "over both runs whole, warm-ups included";
  EXPECT_EQ(second.memory.rss_peak_bytes, 7);
  EXPECT_EQ(second.memory.device_peak_bytes, 3);

  RunResult third = RunOf({1'500'000, 90'000, 95'000});
  AddEarlierRepeats(second, kWarmup, third);
  EXPECT_EQ(third.repeat, 3);
  EXPECT_EQ(third.step_ns.all_ns.size(), 7U);
  EXPECT_EQ(third.step_ns.median_ns, 105'000);
  EXPECT_NEAR(third.throughput.cold_tokens_per_s, 9000 / 5215e-6, 1e-3);
}

TEST(Repeats, WithoutStepTimesARunKeepsItsOwnFigures) {
  RunResult result = RunOf({1'000'000, 100'000, 100'000});
  RunResult earlier;
  earlier.repeat = 1;
  AddEarlierRepeats(earlier, kWarmup, result);
  EXPECT_EQ(result.repeat, 2);
  EXPECT_EQ(result.step_ns.median_ns, 100'000);
  EXPECT_EQ(result.step_ns.all_ns.size(), 3U);

  RunResult silent;
  silent.throughput.steady_tokens_per_s = 5;
  AddEarlierRepeats(result, kWarmup, silent);
  EXPECT_EQ(silent.repeat, 3);
  EXPECT_EQ(silent.throughput.steady_tokens_per_s, 5);
  EXPECT_TRUE(silent.step_ns.all_ns.empty());
}

}  // namespace
}  // namespace ridgeline
