#include "driver/pace.h"

#include <gtest/gtest.h>

namespace ridgeline {
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

TEST(BundleSize, OnePointAJobWherePointsTakeASecondOrMore) {
  BundleSize bundle;
  EXPECT_EQ(bundle.points(), 1);
  bundle.JobEnded(1, 1000 * kMs);
  EXPECT_EQ(bundle.points(), 1);
  bundle.JobEnded(1, 90'000 * kMs);
  EXPECT_EQ(bundle.points(), 1);
}

TEST(BundleSize, DoublesForShortPointsToABound) {
  BundleSize bundle;
  int64_t expected = 1;
  for (int i = 0; i < 12; ++i) {
    bundle.JobEnded(bundle.points(), bundle.points() * kMs);
    expected = std::min<int64_t>(2 * expected, 128);
    EXPECT_EQ(bundle.points(), expected);
  }
}

TEST(BundleSize, AimsAtAboutASecondAJob) {
  BundleSize bundle;
  for (int i = 0; i < 8; ++i) bundle.JobEnded(bundle.points(), bundle.points() * 100 * kMs);
  EXPECT_EQ(bundle.points(), 10);
  bundle.JobEnded(10, 10 * 600 * kMs);  // points became long: the sweep goes from cheap to dear
  EXPECT_EQ(bundle.points(), 1);
}

TEST(BundleSize, SurvivesWhatCannotBe) {
  BundleSize bundle;
  bundle.JobEnded(0, 5);
  EXPECT_EQ(bundle.points(), 1);
  bundle.JobEnded(1, 0);
  EXPECT_EQ(bundle.points(), 2);
}

}  // namespace
}  // namespace ridgeline
