// Cholesky's decomposition of a symmetric positive definite matrix into L Lᵀ, and what is solved with it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ridgeline {

class Cholesky {
 public:
  // Of `matrix`, n x n, row by row; its lower half is read. Takes n³/6 products. What rounding has left of a pivot that
  // should be positive counts as 1e-12 at least.
  Cholesky(std::vector<double> matrix, size_t n);

  // Each solves for x in place of `b`, of n numbers, with n²/2 products.
  void SolveLower(std::span<double> b) const;  // L x = b
  void SolveUpper(std::span<double> b) const;  // Lᵀ x = b

 private:
  size_t n_;
  std::vector<double> lower_;  // row by row; what is above the diagonal is not read
};

}  // namespace ridgeline
