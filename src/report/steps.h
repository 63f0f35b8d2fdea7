// Reads the step times of a measurement's runs from the store's columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stats/steady.h"

namespace ridgeline::report {

// The measured steps in the order in which they ran, one list per run. A point's repeats are runs of `steps` each. If
// the steps are no whole number of runs, they count as one run. `all_steps_ns`, `warmup_steps` and `steps` are columns
// of the store's views. Nothing if no steps are left. Throws Error(kInvalidInput) if step times are invalid.
std::vector<std::vector<double>> StepsOfRuns(const std::string& all_steps_ns, int64_t warmup_steps, int64_t steps);

// Each run's steady steps, from times in nanoseconds. A trainer that reports no step times has a single median, or 0.
// That counts as one run without an effective size.
std::vector<stats::SteadySteps> SteadyRuns(const std::string& all_steps_ns, int64_t warmup_steps, int64_t steps,
                                           int64_t step_median_ns);

}  // namespace ridgeline::report
