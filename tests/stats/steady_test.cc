#include "stats/steady.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace ridgeline::stats {
namespace {

// The stationary series x_i = neighbours x_(i-1) + noise, with a standard deviation of 1.
std::vector<double> Neighbourly(size_t count, double neighbours, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values = {normal(random)};
  while (values.size() < count) {
    values.push_back(neighbours * values.back() + std::sqrt(1 - neighbours * neighbours) * normal(random));
  }
  return values;
}

TEST(WarmUp, IsFoundWhereItEnds) {
  std::vector<double> values = Neighbourly(100, 0.3);
  for (size_t i = 0; i < 20; ++i) values[i] += 10;
  EXPECT_GE(WarmUp(values), 20);
  EXPECT_LE(WarmUp(values), 30);
}

TEST(WarmUp, IsAtMostHalf) {
  std::vector<double> values = Neighbourly(100, 0);
  for (size_t i = 0; i < 70; ++i) values[i] += 10;
  EXPECT_LE(WarmUp(values), 50);
}

TEST(WarmUp, FewOrConstantValuesHaveNoWarmUp) {
  std::vector<double> values(19, 1.0);
  values[0] = 50;
  EXPECT_EQ(WarmUp(values), 0);
  values.push_back(1);
  EXPECT_EQ(WarmUp(values), 5);
  EXPECT_EQ(WarmUp(std::vector<double>(100, 3.0)), 0);
  EXPECT_EQ(WarmUp({}), 0);
}

TEST(CorrelationTime, IsThatOfTheSeries) {
  EXPECT_NEAR(CorrelationTime(Neighbourly(20'000, 0)), 1, 0.1);
  EXPECT_NEAR(CorrelationTime(Neighbourly(20'000, 0.6)), 4, 0.5) << "(1 + 0.6) / (1 - 0.6)";
  EXPECT_EQ(CorrelationTime(std::vector<double>(10, 3.0)), 1);
  EXPECT_EQ(CorrelationTime(std::vector<double>{1, 2}), 1);
  EXPECT_EQ(CorrelationTime({}), 1);
}

TEST(SteadySteps, AreThoseAfterTheWarmUp) {
  std::vector<double> times;
  for (int i = 0; i < 40; ++i) times.push_back(i < 10 ? 5e8 : 1e8 + 1e5 * (i % 3));
  const auto steady = FindSteadySteps(times);
  ASSERT_TRUE(steady);
  EXPECT_EQ(steady->warm_up, 10);
  EXPECT_DOUBLE_EQ(steady->log_median, std::log(1e8 + 1e5));
  EXPECT_GE(steady->correlation_time, 1);
  EXPECT_DOUBLE_EQ(steady->effective_size, 30 / steady->correlation_time);
}

TEST(SteadySteps, InvalidTimesHaveNoSteadySteps) {
  EXPECT_FALSE(FindSteadySteps({}));
  EXPECT_FALSE(FindSteadySteps(std::vector<double>{1, 0, 2}));
  EXPECT_FALSE(FindSteadySteps(std::vector<double>{1, NAN}));
  EXPECT_DOUBLE_EQ(FindSteadySteps(std::vector<double>{7})->log_median, std::log(7.0));
}

}  // namespace
}  // namespace ridgeline::stats
