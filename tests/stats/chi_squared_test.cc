#include "stats/chi_squared.h"

#include <gtest/gtest.h>

namespace ridgeline::stats {
namespace {

TEST(ChiSquared, SharesAreThoseOfTheTables) {
  EXPECT_NEAR(ChiSquaredBelow(0.00393214, 1), 0.05, 1e-7);
  EXPECT_NEAR(ChiSquaredBelow(0.102587, 2), 0.05, 1e-6);
  EXPECT_NEAR(ChiSquaredBelow(0.351846, 3), 0.05, 1e-6);
  EXPECT_NEAR(ChiSquaredBelow(3.84146, 1), 0.95, 1e-6);
  EXPECT_NEAR(ChiSquaredBelow(11.0705, 5), 0.95, 1e-6);
  EXPECT_NEAR(ChiSquaredBelow(31.4104, 20), 0.95, 1e-6);
  EXPECT_EQ(ChiSquaredBelow(0, 3), 0);
}

TEST(ChiSquared, QuantilesAreTheirInverse) {
  for (const int64_t freedom : {1, 2, 5, 40}) {
    for (const double share : {0.01, 0.05, 0.5, 0.99}) {
      EXPECT_NEAR(ChiSquaredBelow(ChiSquaredQuantile(share, freedom), freedom), share, 1e-9) << freedom;
    }
  }
}

}  // namespace
}  // namespace ridgeline::stats
