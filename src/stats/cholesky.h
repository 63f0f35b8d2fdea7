// Cholesky decomposition of a symmetric positive definite matrix into L Lᵀ, and solving with it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ridgeline::stats {

class Cholesky {
 public:
  // Decomposes `matrix`, n x n, row by row; reads its lower half. Takes n³/6 products. A pivot that rounding has made
  // smaller than 1e-12 counts as 1e-12.
  Cholesky(std::vector<double> matrix, size_t n);

  // Each solves for x and overwrites `b`, n numbers, with it. Takes n²/2 products.
  void SolveLower(std::span<double> b) const;  // L x = b
  void SolveUpper(std::span<double> b) const;  // Lᵀ x = b

 private:
  size_t n_;
  std::vector<double> lower_;  // row by row; entries above the diagonal are not read
};

}  // namespace ridgeline::stats
