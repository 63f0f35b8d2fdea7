#include "run/gpu_limits.h"

#include <gtest/gtest.h>

#include <set>

namespace ridgeline {
namespace {

TEST(GpuLimits, HaveABitAndANameEach) {
  std::set<std::string_view> names;
  uint64_t bits = 0;
  for (const GpuClockLimit& limit : GpuClockLimits()) {
    EXPECT_TRUE(names.insert(limit.name).second) << limit.name;
    EXPECT_EQ(bits & limit.nvml_bit, 0U) << limit.name;
    bits |= limit.nvml_bit;
  }
}

TEST(GpuLimits, NamesThrottlingLimitsTheMostFrequentFirst) {
  GpuFigures gpu;
  EXPECT_EQ(WhatThrottled(gpu), "");
  gpu.clock_limits = {{"gpu_idle", 90}, {"sync_boost", 5}, {"sw_power_cap", 9}, {"hw_slowdown", 0}, {"of_another", 7}};
  EXPECT_EQ(WhatThrottled(gpu), "") << "none of these costs speed, as far as we know";
  gpu.clock_limits["hw_power_brake_slowdown"] = 3;
  gpu.clock_limits["sw_thermal_slowdown"] = 8;
  EXPECT_EQ(WhatThrottled(gpu), "its heat, the power supply's brake");
}

}  // namespace
}  // namespace ridgeline
