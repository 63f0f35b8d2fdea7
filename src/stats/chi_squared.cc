#include "stats/chi_squared.h"

#include <cmath>
#include <numbers>

namespace ridgeline::stats {

double ChiSquaredBelow(double x, int64_t freedom) {
  const double half = x / 2;
  const bool odd = freedom % 2 == 1;
  // (x / 2)^power / Gamma(power + 1), for the powers 0, 1, … or 1/2, 3/2, …
  double term = odd ? 2 * std::sqrt(half / std::numbers::pi) : 1;
  double sum = 0;
  for (double power = odd ? 0.5 : 0; power < static_cast<double>(freedom - 1) / 2; ++power) {
    sum += term;
    term *= half / (power + 1);
  }
  return (odd ? std::erf(std::sqrt(half)) : 1) - std::exp(-half) * sum;
}

double ChiSquaredQuantile(double share, int64_t freedom) {
  double low = 0;
  double high = 1;
  while (ChiSquaredBelow(high, freedom) < share) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (ChiSquaredBelow(middle, freedom) < share ? low : high) = middle;
  }
  return high;
}

}  // namespace ridgeline::stats
