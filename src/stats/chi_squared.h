// The chi-squared distribution for whole degrees of freedom.
#pragma once

#include <cstdint>

namespace ridgeline::stats {

// P(X <= x): a finite series (Abramowitz and Stegun, 1964, 26.4.4 and 26.4.5). REQUIRES: x >= 0, freedom >= 1.
double ChiSquaredBelow(double x, int64_t freedom);

// The x with P(X <= x) = share. REQUIRES: 0 < share < 1, freedom >= 1.
double ChiSquaredQuantile(double share, int64_t freedom);

}  // namespace ridgeline::stats
