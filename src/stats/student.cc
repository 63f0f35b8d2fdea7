#include "stats/student.h"

#include <cmath>
#include <numbers>

namespace ridgeline::stats {

double StudentTail(double t, int64_t freedom) {
  const double theta = std::atan(t / std::sqrt(static_cast<double>(freedom)));
  const double cosine = std::cos(theta);
  const bool odd = freedom % 2 == 1;
  double term = odd ? cosine : 1;
  double sum = freedom == 1 ? 0 : term;
  for (int64_t power = odd ? 3 : 2; power <= freedom - 2; power += 2) {
    term *= cosine * cosine * static_cast<double>(power - 1) / static_cast<double>(power);
    sum += term;
  }
  const double within = odd ? 2 / std::numbers::pi * (theta + std::sin(theta) * sum) : std::sin(theta) * sum;
  return (1 - within) / 2;
}

double StudentQuantile(double tail, int64_t freedom) {
  double low = 0;
  double high = 1;
  while (StudentTail(high, freedom) > tail) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (StudentTail(middle, freedom) > tail ? low : high) = middle;
  }
  return high;
}

}  // namespace ridgeline::stats
