// Kriging, also called Gaussian process regression: predicts values at some places from known values at similar places
// (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, chapter 2).
//
// The values have mean zero and the given covariances, which are known only up to a common factor. The known values
// estimate that factor, together with `kFactorWeight` imaginary values that say 1.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "stats/cholesky.h"

namespace ridgeline::stats {

class Kriging {
 public:
  // Covariance of the values at two places; of a place with itself, the variance.
  using Covariance = std::function<double(size_t, size_t)>;

  struct Known {
    size_t place = 0;
    double value = 0;
    double noise = 0;  // standard deviation of the measurement
  };

  struct Guess {
    double mean = 0;
    double deviation = 0;  // standard deviation of the value itself, without noise
  };

  static constexpr double kFactorWeight = 4;

  // The first `judged` of `known` estimate the factor; the others do not. Takes n³/6 products. REQUIRES: the
  // covariances are positive semidefinite, and noise > 0.
  Kriging(std::vector<Known> known, size_t judged, Covariance covariance);

  // Takes n²/2 products.
  Guess At(size_t place) const;

  // The square root of the factor. Above 1, the values vary more than the given covariances say.
  double widening() const { return widening_; }

 private:
  std::vector<Known> known_;
  Covariance covariance_;
  Cholesky cholesky_;           // of the covariances of the known values
  std::vector<double> solved_;  // L⁻¹ · known values
  double widening_ = 1;
};

}  // namespace ridgeline::stats
