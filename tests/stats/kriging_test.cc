#include "stats/kriging.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

namespace ridgeline::stats {
namespace {

// Places on a line, one apart. The closer they are, the more alike.
double OnALine(size_t a, size_t b) {
  return 0.04 * std::pow(0.8, std::abs(static_cast<double>(a) - static_cast<double>(b)));
}

TEST(Kriging, KnowingNothingItGuessesWhatWasThought) {
  const Kriging::Guess guess = Kriging({}, 0, OnALine).At(3);
  EXPECT_EQ(guess.mean, 0);
  EXPECT_DOUBLE_EQ(guess.deviation, 0.2);
}

// If two values have a correlation of r, the guess for one is r times the other, and its variance is smaller by r².
TEST(Kriging, OneValueTellsOfAnotherByTheirCorrelation) {
  const Kriging from_one({{0, 0.2, 1e-6}}, 0, OnALine);
  const Kriging::Guess guess = from_one.At(2);
  EXPECT_NEAR(guess.mean, 0.64 * 0.2, 1e-9);
  EXPECT_NEAR(guess.deviation, 0.2 * std::sqrt(1 - 0.64 * 0.64), 1e-9);
}

TEST(Kriging, ReturnsTheMeasurementAtAMeasuredPoint) {
  const Kriging known({{0, 0.1, 1e-4}, {4, -0.2, 1e-4}, {9, 0.05, 1e-4}}, 0, OnALine);
  EXPECT_NEAR(known.At(4).mean, -0.2, 1e-3);
  EXPECT_LT(known.At(4).deviation, 1e-3);
  EXPECT_LT(known.At(5).mean, 0) << "a neighbour is alike";
  EXPECT_GT(known.At(6).deviation, known.At(5).deviation) << "less is known of what is farther";
}

// A measurement whose noise equals the value's uncertainty counts by half.
TEST(Kriging, NoiseIsNotBelieved) { EXPECT_NEAR(Kriging({{0, 0.2, 0.2}}, 0, OnALine).At(0).mean, 0.1, 1e-12); }

TEST(Kriging, ValuesFartherFromZeroThanWasThoughtWidenIt) {
  std::vector<Kriging::Known> close, far;
  for (size_t i = 0; i < 8; ++i) {
    const double sign = i % 2 == 0 ? 1 : -1;
    close.push_back({20 * i, sign * 0.05, 0.01});
    far.push_back({20 * i, sign * 1.0, 0.01});
  }
  EXPECT_LT(Kriging(close, 8, OnALine).widening(), 1);
  EXPECT_GT(Kriging(far, 8, OnALine).widening(), 3);
  EXPECT_EQ(Kriging(far, 0, OnALine).widening(), 1) << "none of them is judged by";
}

}  // namespace
}  // namespace ridgeline::stats
