// What is known at some places, carried over to others as far as they are alike: kriging, also called a Gaussian
// process (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, chapter 2). Numbers in, numbers
// out.
//
// The values have a mean of zero and the covariances that are given. Where those are known up to a factor alone, as
// here, the factor is what the values themselves say, weighed against `kFactorWeight` values that say 1.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "stats/cholesky.h"

namespace ridgeline {

class Kriging {
 public:
  // Of the values at two places; of a place with itself the variance.
  using Covariance = std::function<double(size_t, size_t)>;

  struct Known {
    size_t place = 0;
    double value = 0;
    double noise = 0;  // standard deviation of its measurement
  };

  struct Guess {
    double mean = 0;
    double deviation = 0;  // standard, of the value itself, without noise
  };

  static constexpr double kFactorWeight = 4;

  // Of `known`, the first `judged` say what the factor is; the others are taken as they are. Takes n³/6 products.
  // REQUIRES: the covariances are those of something, and noise is above 0.
  Kriging(std::vector<Known> known, size_t judged, Covariance covariance);

  // Takes n²/2 products.
  Guess At(size_t place) const;

  // The square root of the factor: above 1 where values are farther from zero, and from each other, than was thought.
  double widening() const { return widening_; }

 private:
  std::vector<Known> known_;
  Covariance covariance_;
  Cholesky cholesky_;           // of the known values' covariances
  std::vector<double> solved_;  // of the values
  double widening_ = 1;
};

}  // namespace ridgeline
