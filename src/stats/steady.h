// The steady step time of one run. The warm-up is detected, not assumed, and correlated steps do not count as
// independent ones.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace ridgeline::stats {

struct SteadySteps {
  double log_median = 0;        // natural logarithm of the median steady step's time in ns
  size_t warm_up = 0;           // the steps before the steady ones
  double correlation_time = 1;  // integrated autocorrelation time of the steady steps' logarithms, in steps; at least 1
  double effective_size = 0;    // how many independent steps are worth as much: steady steps / correlation_time
};

// Takes a run's step times in order. Nothing if there are no steps, or a time is not positive.
std::optional<SteadySteps> FindSteadySteps(std::span<const double> step_times);

// How many values to cut off at the beginning: MSER-5 (White, Cobb and Spratt, 2000). It averages every five values,
// and keeps the tail of these means that minimizes the squared standard error, sum of squares / count². At most half is
// cut, and nothing of fewer than 20 values.
size_t WarmUp(std::span<const double> values);

// The integrated autocorrelation time, 1 + 2 (rho_1 + rho_2 + …), by the initial positive sequence: pairs of
// neighbouring autocorrelations, while their sum is positive (Geyer, 1992). At least 1, and 1 if all values are equal.
double CorrelationTime(std::span<const double> values);

}  // namespace ridgeline::stats
