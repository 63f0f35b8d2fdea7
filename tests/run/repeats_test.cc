#include "run/repeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/step_figures.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kWarmup = 1;

// A run of a warm-up step and measured steps, with 1000 tokens each.
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

TEST(Repeats, AreDisturbedOnAGpuAsTheWorstOfThem) {
  RunResult first = RunOf({1'000'000, 100'000, 120'000}, 2);  // covers two repeats
  first.gpu = {400, 650, 700, 10, 1800, 1500, 2600, 70, 0.5, {{"sw_power_cap", 5}}, 1, 2, 3, 4096};
  RunResult second = RunOf({2'000'000, 200'000, 110'000});
  second.gpu = {700, 710, 700, 20, 1500, 1600, 2600, 60, 0.25, {{"sw_power_cap", 1}, {"hw_slowdown", 1}}, 1, 0, 0, 0};
  AddEarlierRepeats(first, kWarmup, second);
  const GpuFigures& gpu = second.gpu;
  EXPECT_EQ(gpu.power_w, 500) << "over three runs";
  EXPECT_EQ(gpu.power_max_w, 710);
  EXPECT_EQ(gpu.energy_j, 30);
  EXPECT_EQ(gpu.sm_clock_mhz, 1700);
  EXPECT_EQ(gpu.sm_clock_min_mhz, 1500);
  EXPECT_EQ(gpu.memory_clock_mhz, 2600);
  EXPECT_EQ(gpu.temperature_c, 70);
  EXPECT_EQ(gpu.throttled_share, 0.5);
  EXPECT_THAT(gpu.clock_limits, ElementsAre(std::pair("hw_slowdown", 1), std::pair("sw_power_cap", 6)));
  EXPECT_EQ(gpu.ecc_corrected, 2);
  EXPECT_EQ(gpu.ecc_uncorrected, 2);
  EXPECT_EQ(gpu.others, 3);
  EXPECT_EQ(gpu.others_bytes, 4096);

  RunResult third = RunOf({2'000'000, 200'000, 110'000});
  third.gpu.power_w = 400;
  AddEarlierRepeats(second, kWarmup, third);
  EXPECT_EQ(third.gpu.energy_j, std::nullopt) << "of some steps alone it would be too little";
  EXPECT_EQ(third.gpu.others, 3);
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
