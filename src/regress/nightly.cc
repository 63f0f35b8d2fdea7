#include "regress/nightly.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "stats/median.h"

namespace ridgeline {
namespace {

constexpr double kPower80 = 0.8416;  // the normal quantile of 80 %
constexpr double kMemoryBytes = 64 << 20;
constexpr double kMemoryShare = 0.005;

double MedianOfRuns(std::span<const double> runs) {
  std::vector<double> values(runs.begin(), runs.end());
  return MedianOf(values);
}

}  // namespace

std::optional<Baseline> RollingBaseline(std::span<const double> history) {
  if (history.size() < kHistoryRuns) return std::nullopt;
  const auto last = history.last(kHistoryRuns);
  return Baseline{MedianOfRuns(last), RobustSigma(last), last.size()};
}

Baseline PinnedBaseline(std::span<const double> runs, const Baseline& rolling) {
  return {MedianOfRuns(runs), rolling.sigma, runs.size()};
}

Screening Screen(std::span<const double> tonight, const Baseline& baseline, double tolerance) {
  const auto runs = static_cast<double>(tonight.size());
  const double mean = std::accumulate(tonight.begin(), tonight.end(), 0.0) / runs;
  const double error = baseline.sigma * std::sqrt(1 / runs + std::numbers::pi / 2 / static_cast<double>(baseline.runs));
  Screening screening;
  screening.change = mean - baseline.log_step_time;
  screening.threshold = std::max(std::log1p(tolerance), 3 * error);
  screening.detectable = screening.threshold + kPower80 * error;
  screening.suspect = screening.change > screening.threshold;
  return screening;
}

bool MemoryGrew(int64_t base_bytes, int64_t head_bytes) {
  const auto base = static_cast<double>(base_bytes);
  return static_cast<double>(head_bytes) - base > std::max(kMemoryBytes, kMemoryShare * base);
}

double MemoryTolerance(int64_t base_bytes) {
  return std::max(kMemoryBytes / static_cast<double>(base_bytes), kMemoryShare);
}

}  // namespace ridgeline
