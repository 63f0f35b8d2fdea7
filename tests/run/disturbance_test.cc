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

}  // namespace
}  // namespace ridgeline
