#include "base/clock.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

TEST(Clock, MonotonicTimeNeverGoesBack) {
  const SystemClock clock;
  int64_t before = clock.MonotonicNs();
  for (int i = 0; i < 10'000; ++i) {
    const int64_t now = clock.MonotonicNs();
    ASSERT_GE(now, before);
    before = now;
  }
}

TEST(Clock, SleepingTakesAtLeastThatLong) {
  SystemClock clock;
  const int64_t before = clock.MonotonicNs();
  clock.SleepNs(2'000'000);
  EXPECT_GE(clock.MonotonicNs() - before, 2'000'000);
}

TEST(Clock, WallTimeIsOfThisCentury) {
  EXPECT_GT(SystemClock().UnixNs(), 1'600'000'000'000'000'000);
  EXPECT_LT(SystemClock().UnixNs(), 4'200'000'000'000'000'000);
}

TEST(Clock, AFakeMovesOnlyBySleeping) {
  FakeClock clock;
  const int64_t start = clock.MonotonicNs();
  EXPECT_EQ(clock.MonotonicNs(), start);
  clock.SleepNs(3'600'000'000'000);
  EXPECT_EQ(clock.MonotonicNs(), start + 3'600'000'000'000);
  EXPECT_EQ(clock.UnixNs(), clock.MonotonicNs());
}

}  // namespace
}  // namespace ridgeline
