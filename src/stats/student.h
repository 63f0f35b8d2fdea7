// Student's t for whole degrees of freedom, without a table: what a difference of few runs is judged by.
#pragma once

#include <cstdint>

namespace ridgeline {

// The share of Student's t above `t`: a finite series (Abramowitz and Stegun, 1964, 26.7.3 and 26.7.4), to about 1e-15.
// REQUIRES: freedom >= 1.
double StudentTail(double t, int64_t freedom);

// The t above which is the share `tail`. REQUIRES: 0 < tail <= 1/2, freedom >= 1.
double StudentQuantile(double tail, int64_t freedom);

}  // namespace ridgeline
