// What the steps of one run come to once it runs steadily. The warm-up is found and not assumed, and steps that take
// after their neighbours are not counted as if they did not.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace ridgeline {

struct SteadySteps {
  double log_median = 0;        // natural logarithm of the median steady step's time
  size_t warm_up = 0;           // the steps before the steady ones
  double correlation_time = 1;  // integrated autocorrelation time of the steady steps' logarithms, in steps; at least 1
  double effective_size = 0;    // so many independent steps would tell a mean as well: steady steps / correlation_time
};

// Of a run's step times in the order they came. Nothing of no steps, or where a time is not positive.
std::optional<SteadySteps> FindSteadySteps(std::span<const double> step_times);

// How many values to cut off at the beginning: MSER-5 (White, Cobb and Spratt, 2000). Of the means of every five
// values, those are kept whose own mean has the smallest standard error, squared: sum of squares / count². At most half
// is cut; of fewer than 20 values nothing.
size_t WarmUp(std::span<const double> values);

// 1 + 2 (rho_1 + rho_2 + …), by the initial positive sequence: pairs of neighbouring autocorrelations for as long as
// their sum is positive (Geyer, 1992). At least 1, and 1 where nothing varies.
double CorrelationTime(std::span<const double> values);

}  // namespace ridgeline
