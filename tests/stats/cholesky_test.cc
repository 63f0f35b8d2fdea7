#include "stats/cholesky.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace ridgeline::stats {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

TEST(Cholesky, SolvesWhatItDecomposes) {
  // L = (2 0 0; 1 3 0; -1 2 1), and the matrix is L Lᵀ. The values above the diagonal are not read.
  const Cholesky cholesky({4, 99, 99, 2, 10, 99, -2, 5, 6}, 3);
  std::vector<double> x = {4, 11, 8};
  cholesky.SolveLower(x);
  EXPECT_THAT(x, Pointwise(DoubleNear(1e-12), std::vector<double>{2, 3, 4}));
  cholesky.SolveUpper(x);
  EXPECT_THAT(x, Pointwise(DoubleNear(1e-12), std::vector<double>{23.0 / 6, -5.0 / 3, 4}));
}

}  // namespace
}  // namespace ridgeline::stats
