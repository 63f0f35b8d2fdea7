#include "predict/time_model.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline::predict {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

TEST(RelativeCost, GoesAsTokensAndSteps) {
  const auto cost = [](const std::string& defaults) {
    const sweep::Sweep sweep = sweep::ParseSweep("name: test\ndefaults: {model: llama-10m" + defaults + "}", "s.yaml");
    return RelativeCost(sweep::Expand(sweep)[0].spec);
  };
  EXPECT_DOUBLE_EQ(cost(", batch_size: 4"), 4 * cost(", batch_size: 1"));
  EXPECT_DOUBLE_EQ(cost(", seq_length: 1024"), 2 * cost(", seq_length: 512"));
  EXPECT_DOUBLE_EQ(cost(", grad_accumulation: 3"), 3 * cost(""));
  EXPECT_DOUBLE_EQ(cost(", ranks: 4"), 4 * cost(""));
  EXPECT_DOUBLE_EQ(cost(", ranks: 4, communicator: virtual"), cost(""));
  EXPECT_DOUBLE_EQ(cost(", warmup_steps: 2, steps: 4, repeats: 7"), 3 * cost(", warmup_steps: 1, steps: 1"))
      << "of one repeat";
}

TEST(TimeModel, KnowsNothingAtFirst) {
  const TimeModel times;
  EXPECT_EQ(times.SecondsPerCost(), 0);
  EXPECT_EQ(times.Seconds(5), 0);
  EXPECT_EQ(times.Seconds(5, 60), 60) << "a point's time limit is all that is known of it";
  EXPECT_EQ(times.LeftNs(5, 0, 1), 0);
}

TEST(TimeModel, AssumptionsCountUntilSomethingIsMeasured) {
  TimeModel times;
  times.Assume(1, 10);
  times.Assume(1, 30);
  times.Assume(1, 30);
  EXPECT_EQ(times.Seconds(2), 60);
  EXPECT_FALSE(times.measured());
  times.Took(1, 5);
  EXPECT_TRUE(times.measured());
  EXPECT_EQ(times.Seconds(2), 10);
  times.Assume(1, 1000);
  EXPECT_EQ(times.Seconds(2), 10);
}

TEST(TimeModel, SaysHowFarItsPointsAreSpread) {
  TimeModel times;
  EXPECT_EQ(times.Spread(), 1);
  times.Took(1, 10);
  EXPECT_EQ(times.Spread(), TimeModel::kFewSpread) << "of one nobody can tell";
  for (int i = 0; i < 8; ++i) times.Took(1, 10);
  times.Took(1, 50);
  EXPECT_EQ(times.Spread(), TimeModel::kFewSpread) << "one of ten may be beyond";
  times.Took(1, 50);
  EXPECT_EQ(times.Spread(), 5);
  for (int i = 0; i < 100; ++i) times.Took(1, 10);
  EXPECT_EQ(times.Spread(), 1) << "two of more than a hundred";
}

TEST(TimeModel, TimeGoesAsTheCostUpToTheLimit) {
  TimeModel times;
  times.Took(10, 5);
  EXPECT_DOUBLE_EQ(times.Seconds(40), 20);
  EXPECT_DOUBLE_EQ(times.Seconds(40, 60), 20);
  EXPECT_DOUBLE_EQ(times.Seconds(40, 15), 15);
}

TEST(TimeModel, AHangingPointAndManyCheapOnesMoveItLittle) {
  TimeModel times;
  for (int i = 0; i < 10; ++i) times.Took(100, 100);
  times.Took(100, 50'000);
  EXPECT_DOUBLE_EQ(times.SecondsPerCost(), 1);
  for (int i = 0; i < 50; ++i) times.Took(1, 20);  // these are the most points, but a twentieth of the work
  EXPECT_DOUBLE_EQ(times.SecondsPerCost(), 1);
}

TEST(TimeModel, ForgetsTheOldest) {
  TimeModel times;
  times.Took(1e6, 1);
  for (size_t i = 0; i < TimeModel::kRemembered; ++i) times.Took(1, 3);
  EXPECT_DOUBLE_EQ(times.SecondsPerCost(), 3);
}

TEST(TimeModel, IgnoresImpossibleTimes) {
  TimeModel times;
  times.Took(10, 0);
  times.Took(10, -1);
  times.Took(0, 10);
  times.Took(10, std::numeric_limits<double>::infinity());
  times.Took(std::numeric_limits<double>::quiet_NaN(), 10);
  EXPECT_EQ(times.SecondsPerCost(), 0);
}

TEST(TimeModel, ABundleHoldsWhatFitsItsTime) {
  TimeModel times;
  times.Took(1, 60);
  EXPECT_EQ(times.FitWithin(120, std::vector<double>(5, 1.0)), 2);
  EXPECT_EQ(times.FitWithin(420, std::vector<double>{1, 2, 4, 8}), 3);
  EXPECT_EQ(times.FitWithin(120, std::vector<double>{100, 1}), 1) << "one that takes longer is alone";
  EXPECT_EQ(times.FitWithin(120, std::vector<double>{100, 1}, 30), 2) << "which no point does that is stopped before";
  EXPECT_EQ(times.FitWithin(120, {}), 0);
}

TEST(TimeModel, ABundleOfUnknownPointsGoesByTheirLimit) {
  const TimeModel times;
  EXPECT_EQ(times.FitWithin(1500, std::vector<double>{1, 2, 4}, 600), 2);
  EXPECT_EQ(times.FitWithin(1500, std::vector<double>{1, 2, 4}), 1) << "nothing says that a second one fits";
}

// Points that fill a second become fewer as they change from cheap to expensive.
TEST(TimeModel, FewerPointsFitAsTheyBecomeLong) {
  TimeModel times;
  times.Took(1, 0.1);
  const std::vector<double> cheap(40, 1.0);
  const std::vector<double> dear(40, 6.0);
  EXPECT_EQ(times.FitWithin(1.05, cheap), 10);
  EXPECT_EQ(times.FitWithin(1.05, dear), 1);
}

TEST(TimeModel, TheTimeLeftGoesAsTheWork) {
  TimeModel times;
  times.Took(1e12, 1);
  EXPECT_EQ(times.LeftNs(4e12, 0, 1), 4 * kSecondNs);
  EXPECT_EQ(times.LeftNs(4e12, kSecondNs, 1), 3 * kSecondNs);
  EXPECT_EQ(times.LeftNs(4e12, 0, 2), 2 * kSecondNs);
  EXPECT_EQ(times.LeftNs(4e12, 9 * kSecondNs, 1), 0) << "never negative";
  EXPECT_EQ(times.LeftNs(4e12, 0, 0), 4 * kSecondNs);
}

}  // namespace
}  // namespace ridgeline::predict
