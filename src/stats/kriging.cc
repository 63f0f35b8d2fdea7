#include "stats/kriging.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ridgeline {

Kriging::Kriging(std::vector<Known> known, size_t judged, Covariance covariance)
    : known_(std::move(known)), covariance_(std::move(covariance)), lower_(known_.size() * known_.size()) {
  const size_t n = known_.size();
  const auto at = [&](size_t row, size_t column) -> double& { return lower_[row * n + column]; };
  for (size_t row = 0; row < n; ++row) {
    for (size_t column = 0; column <= row; ++column) {
      double sum = covariance_(known_[row].place, known_[column].place);
      if (row == column) sum += known_[row].noise * known_[row].noise;
      for (size_t k = 0; k < column; ++k) sum -= at(row, k) * at(column, k);
      at(row, column) = row == column ? std::sqrt(std::max(sum, 1e-12)) : sum / at(column, column);
    }
  }
  solved_.reserve(n);
  for (const Known& one : known_) solved_.push_back(one.value);
  SolveLower(solved_);
  // |L⁻¹ v|² is what the values are expected to come to, n, times the factor. The first rows of L are those of the
  // first values alone.
  judged = std::min(judged, n);
  double square = 0;
  for (size_t i = 0; i < judged; ++i) square += solved_[i] * solved_[i];
  widening_ = std::sqrt((kFactorWeight + square) / (kFactorWeight + static_cast<double>(judged)));
}

void Kriging::SolveLower(std::span<double> b) const {
  const size_t n = known_.size();
  for (size_t row = 0; row < n; ++row) {
    for (size_t k = 0; k < row; ++k) b[row] -= lower_[row * n + k] * b[k];
    b[row] /= lower_[row * n + row];
  }
}

Kriging::Guess Kriging::At(size_t place) const {
  std::vector<double> shared;
  shared.reserve(known_.size());
  for (const Known& one : known_) shared.push_back(covariance_(place, one.place));
  SolveLower(shared);
  Guess guess;
  double explained = 0;
  for (size_t i = 0; i < shared.size(); ++i) {
    guess.mean += shared[i] * solved_[i];
    explained += shared[i] * shared[i];
  }
  guess.deviation = widening_ * std::sqrt(std::max(0.0, covariance_(place, place) - explained));
  return guess;
}

}  // namespace ridgeline
