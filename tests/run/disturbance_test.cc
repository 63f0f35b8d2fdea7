#include "run/disturbance.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

TEST(Disturbance, SaysWhatTookTheCoresTime) {
  RunResult result;
  EXPECT_EQ(Disturbance(result), "");
  result.cores = {0.99, 0.03, 0};
  EXPECT_EQ(Disturbance(result), "");
  result.cores = {0.99, 0.41, 0};
  EXPECT_EQ(Disturbance(result), "others took 41 % of its cores' time");
  result.cores.throttles = 3;
  EXPECT_EQ(Disturbance(result), "others took 41 % of its cores' time, throttled 3 times");
  result.cores = {0.99, 0, 1};
  EXPECT_EQ(Disturbance(result), "throttled 1 time");
}

TEST(Disturbance, SaysWhatDisturbedItsGpu) {
  RunResult result;
  result.gpu.throttled_share = 0;
  result.gpu.ecc_corrected = 3;
  result.gpu.ecc_uncorrected = 0;
  result.gpu.others = 0;
  result.gpu.others_bytes = 4 << 20;
  EXPECT_EQ(Disturbance(result), "") << "as it should be";
  result.gpu.throttled_share = 0.05;
  EXPECT_EQ(Disturbance(result), "");
  result.gpu.throttled_share = 0.125;
  EXPECT_EQ(Disturbance(result), "its GPU was throttled in 12 % of its measured steps");
  result.gpu.clock_limits = {{"sw_thermal_slowdown", 5}, {"sw_power_cap", 2}, {"gpu_idle", 50}};
  EXPECT_EQ(Disturbance(result), "its GPU was throttled in 12 % of its measured steps (its heat)");
  result.gpu = {};
  result.gpu.others = 1;
  EXPECT_EQ(Disturbance(result), "1 other process on its GPU");
  result.gpu.others = 0;
  result.gpu.others_bytes = 5LL << 30;
  EXPECT_EQ(Disturbance(result), "others held 5.37 GB of its GPU's memory") << "though they are not shown";
  result.gpu = {};
  result.gpu.ecc_uncorrected = 2;
  result.cores.throttles = 1;
  EXPECT_EQ(Disturbance(result), "throttled 1 time, 2 uncorrected errors of its GPU's memory");
}

}  // namespace
}  // namespace ridgeline
