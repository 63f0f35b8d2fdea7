// The step times of a measurement, as the store has them: of each of its runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stats/steady.h"

namespace ridgeline {

// The measured steps in the order they ran, one list a run: a point's repeats are runs of `steps` each, and what is no
// whole number of them is one run. `all_steps_ns`, `warmup_steps` and `steps` are columns of the store's views. Nothing
// where no steps are left. Throws Error(kInvalidInput) where step times are none.
std::vector<std::vector<double>> StepsOfRuns(const std::string& all_steps_ns, int64_t warmup_steps, int64_t steps);

// Each run's steady steps, of times in nanoseconds. A trainer that says no times of steps has one median, or 0: that is
// one run, of no effective size.
std::vector<SteadySteps> SteadyRuns(const std::string& all_steps_ns, int64_t warmup_steps, int64_t steps,
                                    int64_t step_median_ns);

}  // namespace ridgeline
