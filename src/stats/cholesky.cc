#include "stats/cholesky.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ridgeline::stats {

Cholesky::Cholesky(std::vector<double> matrix, size_t n) : n_(n), lower_(std::move(matrix)) {
  const auto at = [&](size_t row, size_t column) -> double& { return lower_[row * n + column]; };
  for (size_t row = 0; row < n; ++row) {
    for (size_t column = 0; column <= row; ++column) {
      double sum = at(row, column);
      for (size_t k = 0; k < column; ++k) sum -= at(row, k) * at(column, k);
      at(row, column) = row == column ? std::sqrt(std::max(sum, 1e-12)) : sum / at(column, column);
    }
  }
}

void Cholesky::SolveLower(std::span<double> b) const {
  for (size_t row = 0; row < n_; ++row) {
    for (size_t k = 0; k < row; ++k) b[row] -= lower_[row * n_ + k] * b[k];
    b[row] /= lower_[row * n_ + row];
  }
}

void Cholesky::SolveUpper(std::span<double> b) const {
  for (size_t row = n_; row-- > 0;) {
    for (size_t k = row + 1; k < n_; ++k) b[row] -= lower_[k * n_ + row] * b[k];
    b[row] /= lower_[row * n_ + row];
  }
}

}  // namespace ridgeline::stats
