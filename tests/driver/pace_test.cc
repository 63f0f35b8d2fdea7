#include "driver/pace.h"

#include <gtest/gtest.h>

namespace ridgeline::driver {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(PollPace, AsksOftenAtFirstAndSeldomLater) {
  PollPace pace(0);
  EXPECT_EQ(pace.WaitNs(0), 2 * kMs);
  EXPECT_EQ(pace.WaitNs(160 * kMs), 10 * kMs);
  EXPECT_EQ(pace.WaitNs(3'600'000 * kMs), 250 * kMs);
  pace.Changed(3'600'000 * kMs);
  EXPECT_EQ(pace.WaitNs(3'600'001 * kMs), 2 * kMs);
}

}  // namespace
}  // namespace ridgeline::driver
