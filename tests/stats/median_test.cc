// Intervals hold the true value about as often as they say, on step times like those of runs: independent, correlated
// with their neighbours, and with a part that a whole run shares.
#include "stats/median.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <random>

namespace ridgeline::stats {
namespace {

struct Shape {
  size_t runs = 1;
  size_t steps = 20;
  double neighbours = 0;    // correlation of a step with the one before it
  double between_runs = 0;  // standard deviation of the part that a run's steps share
};

// Step times around e^centre: log-normal, 2 % a step.
std::vector<std::vector<double>> Draw(std::mt19937_64& random, const Shape& shape, double centre = 0) {
  std::normal_distribution<double> normal;
  std::vector<std::vector<double>> runs(shape.runs);
  for (std::vector<double>& run : runs) {
    const double shared = shape.between_runs * normal(random);
    double noise = normal(random);
    for (size_t i = 0; i < shape.steps; ++i) {
      run.push_back(std::exp(centre + shared + 0.02 * noise));
      noise = shape.neighbours * noise + std::sqrt(1 - shape.neighbours * shape.neighbours) * normal(random);
    }
  }
  return runs;
}

// Counts how many of 1,000 intervals of a true ratio of 1.1 hold it, and how many of a true ratio of 1 leave out 1.
struct Counts {
  int held = 0;
  int false_alarms = 0;
};

Counts Try(const Shape& shape) {
  std::mt19937_64 random(1);
  Counts counts;
  for (int i = 0; i < 1000; ++i) {
    const auto of = EstimateMedian(Draw(random, shape, std::log(1.1)));
    const auto to = EstimateMedian(Draw(random, shape));
    const auto same = EstimateMedian(Draw(random, shape));
    const Estimate ratio = Ratio(*of, *to);
    counts.held += std::abs(std::log(ratio.value / 1.1)) <= std::log(Factor(ratio)) ? 1 : 0;
    const Estimate none = Ratio(*same, *to);
    counts.false_alarms += std::abs(std::log(none.value)) > std::log(Factor(none)) ? 1 : 0;
  }
  return counts;
}

TEST(Median, IntervalsHoldWhatIsTrueAsOftenAsTheySay) {
  const Shape shapes[] = {
      {1, 5, 0, 0}, {1, 10, 0, 0},   {1, 20, 0, 0},   {1, 100, 0, 0},     {1, 20, 0.3, 0},    {1, 100, 0.5, 0},
      {3, 5, 0, 0}, {3, 5, 0, 0.02}, {5, 5, 0, 0.05}, {5, 20, 0.5, 0.02}, {10, 5, 0.5, 0.02},
  };
  int false_alarms = 0;
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.runs << " runs of " << shape.steps << " steps, neighbours "
                                    << shape.neighbours << ", between runs " << shape.between_runs);
    const Counts counts = Try(shape);
    EXPECT_GE(counts.held, 920);
    EXPECT_LE(counts.false_alarms, 80);
    false_alarms += counts.false_alarms;
  }
  EXPECT_LE(false_alarms, 50 * static_cast<int>(std::size(shapes))) << "pure noise makes no headline";
}

TEST(Median, ASingleRunKnowsNothingOfHowRunsDiffer) {
  EXPECT_LT(Try({1, 20, 0, 0.05}).held, 600) << "this is what repeats are for";
}

TEST(Median, IsThatOfAllValues) {
  const std::vector<std::vector<double>> runs = {{5, 1, 4}, {}, {2, 3, 9}};
  EXPECT_DOUBLE_EQ(EstimateMedian(runs)->value, 3.5);
  EXPECT_DOUBLE_EQ(EstimateMedian(std::vector<std::vector<double>>{{7, 1, 2, 3, 100}})->value, 3);
}

TEST(Median, TooFewValuesHaveNoInterval) {
  using Runs = std::vector<std::vector<double>>;
  EXPECT_FALSE(EstimateMedian(Runs{}));
  EXPECT_FALSE(EstimateMedian(Runs{{1, 2, 3}}));
  EXPECT_FALSE(EstimateMedian(Runs{{1, 2, 3, 0}}));
  EXPECT_FALSE(EstimateMedian(Runs{{1, 2, 3, NAN}}));
  EXPECT_TRUE(EstimateMedian(Runs{{1, 2}, {3, 4}}));
}

TEST(Median, IsTheSameAtEveryCall) {
  std::mt19937_64 random(3);
  const auto runs = Draw(random, {3, 5, 0, 0.02});
  EXPECT_EQ(EstimateMedian(runs)->standard_error, EstimateMedian(runs)->standard_error);
}

TEST(Median, StepsThatNeverVaryHaveNoInterval) {
  const Estimate same = *EstimateMedian(std::vector<std::vector<double>>{{2, 2, 2, 2, 2}});
  EXPECT_DOUBLE_EQ(Factor(same), 1);
  EXPECT_DOUBLE_EQ(Factor(Ratio(same, same)), 1);
}

TEST(Median, AnOutlierMovesNoMedian) {
  std::vector<double> steps;
  for (int i = 0; i < 4; ++i) steps.insert(steps.end(), {1.00, 1.01, 0.99, 1.02, 0.98});
  steps[4] = 30;  // a step that something disturbed
  const Estimate estimate = *EstimateMedian(std::vector<std::vector<double>>{steps});
  EXPECT_LT(Factor(estimate), 1.05);
}

TEST(Median, ARobustSigmaIsThatOfTheMany) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(5, 2);
  std::vector<double> values(2000);
  for (double& value : values) value = normal(random);
  EXPECT_NEAR(RobustSigma(values), 2, 0.15);
  for (size_t i = 0; i < 100; ++i) values[i] = 1e9;
  EXPECT_NEAR(RobustSigma(values), 2, 0.4);
  EXPECT_EQ(RobustSigma({}), 0);
}

TEST(Median, MoreRepeatsAreWhatTheyAreSaidToBe) {
  const Estimate estimate{1, 0.02, 4};
  const double now = Factor(estimate);
  EXPECT_EQ(RepeatsFor(estimate, 3, now), 3);
  const double wanted = std::sqrt(now);
  const int64_t repeats = RepeatsFor(estimate, 3, wanted);
  const auto with = [&](int64_t count) {
    const double times = static_cast<double>(count) / 3;
    return Factor({1, 0.02 / std::sqrt(times), 4 * times});
  };
  EXPECT_LE(with(repeats), wanted);
  EXPECT_GT(with(repeats - 1), wanted);
  EXPECT_LE(repeats, 12) << "four times as many halve it, and more of them are better known";
}

}  // namespace
}  // namespace ridgeline::stats
