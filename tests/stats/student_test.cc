#include "stats/student.h"

#include <gtest/gtest.h>

namespace ridgeline::stats {
namespace {

TEST(Student, TailsAreThoseOfTheTables) {
  EXPECT_NEAR(StudentTail(12.7062, 1), 0.025, 1e-6);
  EXPECT_NEAR(StudentTail(4.30265, 2), 0.025, 1e-6);
  EXPECT_NEAR(StudentTail(3.18245, 3), 0.025, 1e-6);
  EXPECT_NEAR(StudentTail(2.77645, 4), 0.025, 1e-6);
  EXPECT_NEAR(StudentTail(2.20099, 11), 0.025, 1e-6);
  EXPECT_NEAR(StudentTail(4.03214, 5), 0.005, 1e-6);
  EXPECT_NEAR(StudentTail(1.96234, 1000), 0.025, 1e-6);
  EXPECT_DOUBLE_EQ(StudentTail(0, 7), 0.5);
  EXPECT_DOUBLE_EQ(StudentTail(-2, 4), 1 - StudentTail(2, 4));
}

TEST(Student, QuantilesAreTheirInverse) {
  for (const int64_t freedom : {1, 2, 5, 40}) {
    for (const double tail : {0.5, 0.2, 0.025, 1e-6}) {
      EXPECT_NEAR(StudentTail(StudentQuantile(tail, freedom), freedom) / tail, 1, 1e-6) << freedom;
    }
  }
}

}  // namespace
}  // namespace ridgeline::stats
