#include "stats/kriging.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ridgeline::stats {

namespace {

// Returns the covariances of the known values, row by row, with each value's noise variance on the diagonal. Entries
// above the diagonal stay 0.
std::vector<double> CovariancesOf(const std::vector<Kriging::Known>& known, const Kriging::Covariance& covariance) {
  const size_t n = known.size();
  std::vector<double> covariances(n * n);
  for (size_t row = 0; row < n; ++row) {
    for (size_t column = 0; column <= row; ++column) {
      covariances[row * n + column] = covariance(known[row].place, known[column].place);
    }
    covariances[row * n + row] += known[row].noise * known[row].noise;
  }
  return covariances;
}

}  // namespace

Kriging::Kriging(std::vector<Known> known, size_t judged, Covariance covariance)
    : known_(std::move(known)),
      covariance_(std::move(covariance)),
      cholesky_(CovariancesOf(known_, covariance_), known_.size()) {
  const size_t n = known_.size();
  solved_.reserve(n);
  for (const Known& one : known_) solved_.push_back(one.value);
  cholesky_.SolveLower(solved_);
  // The expectation of |L⁻¹ v|² is n times the factor, for n values. The first rows of L depend on the first values
  // alone.
  judged = std::min(judged, n);
  double square = 0;
  for (size_t i = 0; i < judged; ++i) square += solved_[i] * solved_[i];
  widening_ = std::sqrt((kFactorWeight + square) / (kFactorWeight + static_cast<double>(judged)));
}

Kriging::Guess Kriging::At(size_t place) const {
  std::vector<double> shared;
  shared.reserve(known_.size());
  for (const Known& one : known_) shared.push_back(covariance_(place, one.place));
  cholesky_.SolveLower(shared);
  Guess guess;
  double explained = 0;
  for (size_t i = 0; i < shared.size(); ++i) {
    guess.mean += shared[i] * solved_[i];
    explained += shared[i] * shared[i];
  }
  guess.deviation = widening_ * std::sqrt(std::max(0.0, covariance_(place, place) - explained));
  return guess;
}

}  // namespace ridgeline::stats
