// Student's t distribution for whole degrees of freedom.
#pragma once

#include <cstdint>

namespace ridgeline::stats {

// P(T > t): a finite series (Abramowitz and Stegun, 1964, 26.7.3 and 26.7.4), to about 1e-15.
// REQUIRES: freedom >= 1.
double StudentTail(double t, int64_t freedom);

// The t with P(T > t) = tail. REQUIRES: 0 < tail <= 1/2, freedom >= 1.
double StudentQuantile(double tail, int64_t freedom);

}  // namespace ridgeline::stats
