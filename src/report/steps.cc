#include "report/steps.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"

namespace ridgeline::report {
namespace {

// The measured steps in the order in which they ran, without the warm-up.
std::vector<double> MeasuredSteps(const std::string& all_steps_ns, int64_t warmup_steps) {
  const Json json = ParseJson(all_steps_ns, "the step times in the store");
  std::vector<double> measured;
  for (size_t i = static_cast<size_t>(std::max<int64_t>(warmup_steps, 0)); json.is_array() && i < json.size(); ++i) {
    if (!json[i].is_number()) throw Error(ErrorKind::kInvalidInput, "the step times in the store are not all numbers");
    measured.push_back(json[i].get<double>());
  }
  return measured;
}

}  // namespace

std::vector<std::vector<double>> StepsOfRuns(const std::string& all_steps_ns, int64_t warmup_steps, int64_t steps) {
  const std::vector<double> measured = MeasuredSteps(all_steps_ns, warmup_steps);
  if (measured.empty()) return {};
  const size_t of_a_run = steps > 0 ? static_cast<size_t>(steps) : measured.size();
  if (measured.size() % of_a_run != 0) return {measured};
  std::vector<std::vector<double>> runs;
  for (auto at = measured.begin(); at != measured.end(); at += static_cast<std::ptrdiff_t>(of_a_run)) {
    runs.emplace_back(at, at + static_cast<std::ptrdiff_t>(of_a_run));
  }
  return runs;
}

std::vector<stats::SteadySteps> SteadyRuns(const std::string& all_steps_ns, int64_t warmup_steps, int64_t steps,
                                           int64_t step_median_ns) {
  std::vector<stats::SteadySteps> runs;
  for (const std::vector<double>& run : StepsOfRuns(all_steps_ns, warmup_steps, steps)) {
    if (const auto steady = stats::FindSteadySteps(run)) runs.push_back(*steady);
  }
  if (runs.empty() && step_median_ns > 0) {
    runs.push_back({.log_median = std::log(static_cast<double>(step_median_ns)),
                    .warm_up = 0,
                    .correlation_time = 1,
                    .effective_size = 0});
  }
  return runs;
}

}  // namespace ridgeline::report
