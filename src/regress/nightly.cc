#include "regress/nightly.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "stats/median.h"

namespace ridgeline::regress {
namespace {

constexpr double kPower80 = 0.8416;  // the normal quantile of 80 %
constexpr double kMemoryBytes = 64 << 20;
constexpr double kMemoryShare = 0.005;
constexpr double kOfMedian = std::numbers::pi / 2;  // the variance of a median, relative to that of a mean

double MedianOfRuns(std::span<const double> runs) {
  std::vector<double> values(runs.begin(), runs.end());
  return stats::MedianOf(values);
}

// The deviation of a single value is 0. For two alternating levels, a robust deviation may be 0, too.
double DeviationButLargest(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() > 2) sorted.pop_back();
  const auto count = static_cast<double>(sorted.size());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  double squares = 0;
  for (const double value : sorted) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / std::max(1.0, count - 1));
}

// The standard error of the difference between a mean of this many runs and the baseline.
double ErrorOf(double runs, const Baseline& baseline) {
  const double of_runs = baseline.sigma * std::sqrt(1 / runs + kOfMedian / static_cast<double>(baseline.runs));
  if (baseline.nights == 0) return of_runs;
  return std::max(of_runs, baseline.nights_sigma * std::sqrt(1 + kOfMedian / static_cast<double>(baseline.nights)));
}

// The chance that at least this many of the m n pairs are won if all orders are equally likely (Mann and Whitney,
// 1947). Orders are counted by their wins, one item after another.
double ChanceOfWins(size_t wins, size_t m, size_t n) {
  // ways[i][w]: the number of orders of i of the first and j of the second with w wins, while j grows.
  std::vector<std::vector<double>> ways(m + 1, std::vector<double>(m * n + 1, 0));
  for (auto& row : ways) row[0] = 1;
  for (size_t j = 1; j <= n; ++j) {
    for (size_t i = 1; i <= m; ++i) {
      // If the largest item is of the second, it wins nothing. If it is of the first, it wins over all j.
      for (size_t w = m * n; w >= j; --w) ways[i][w] += ways[i - 1][w - j];
    }
  }
  const std::vector<double>& all = ways[m];
  const double total = std::accumulate(all.begin(), all.end(), 0.0);
  return std::accumulate(all.begin() + static_cast<std::ptrdiff_t>(wins), all.end(), 0.0) / total;
}

}  // namespace

std::optional<Baseline> RollingBaseline(std::span<const double> history, std::span<const double> nights) {
  if (history.size() < kHistoryRuns) return std::nullopt;
  const auto last = history.last(kHistoryRuns);
  Baseline baseline{MedianOfRuns(last), stats::RobustSigma(last), last.size()};
  if (nights.size() < kSigmaNights) return baseline;
  nights = nights.last(std::min(nights.size(), kBaseNights));
  baseline.nights_sigma = DeviationButLargest(nights);
  baseline.nights = nights.size();
  return baseline;
}

Baseline PinnedBaseline(std::span<const double> runs, const Baseline& rolling) {
  return {MedianOfRuns(runs), rolling.sigma, runs.size()};
}

Screening Screen(std::span<const double> tonight, const Baseline& baseline, double tolerance) {
  const auto runs = static_cast<double>(tonight.size());
  const double mean = std::accumulate(tonight.begin(), tonight.end(), 0.0) / runs;
  const double error = ErrorOf(runs, baseline);
  Screening screening;
  screening.change = mean - baseline.log_step_time;
  screening.error = error;
  screening.threshold = std::max(std::log1p(tolerance), kSuspectErrors * error);
  screening.detectable = screening.threshold + kPower80 * error;
  const double median = MedianOfRuns(tonight) - baseline.log_step_time;
  screening.suspect = std::min(screening.change, median) > screening.threshold;
  screening.faint = screening.change > std::max(std::log1p(tolerance), kFaintErrors * error);
  return screening;
}

bool IsLarge(std::span<const double> tonight, const Baseline& baseline) {
  const double change = MedianOfRuns(tonight) - baseline.log_step_time;
  return change > std::log1p(kLargeChange) &&
         change > kLargeErrors * ErrorOf(static_cast<double>(tonight.size()), baseline);
}

std::optional<NightsJudgement> JudgeNights(std::span<const double> before, std::span<const double> window,
                                           double tolerance) {
  if (before.empty() || window.size() < kWindowNights) return std::nullopt;
  before = before.last(std::min(before.size(), kBaseNights));
  window = window.last(kWindowNights);
  double wins = 0;
  for (const double night : window) {
    for (const double other : before) wins += night > other ? 1 : night == other ? 0.5 : 0;
  }
  const double base = MedianOfRuns(before);
  NightsJudgement judgement;
  judgement.change = MedianOfRuns(window) - base;
  const double limit = std::log1p(tolerance);
  judgement.slower = judgement.change > limit && window.back() - base > limit;
  if (judgement.slower) {
    judgement.chance = ChanceOfWins(static_cast<size_t>(std::floor(wins)), window.size(), before.size());
  }
  const auto first = std::ranges::find_if(window, [&](double night) { return night - base > limit; });
  judgement.first = static_cast<size_t>(first - window.begin());
  return judgement;
}

bool MemoryGrew(int64_t base_bytes, int64_t head_bytes) {
  const auto base = static_cast<double>(base_bytes);
  return static_cast<double>(head_bytes) - base > std::max(kMemoryBytes, kMemoryShare * base);
}

double MemoryTolerance(std::span<const double> before) {
  const double base = MedianOfRuns(before);
  const auto count = static_cast<double>(before.size() > 2 ? before.size() - 1 : before.size());
  const double error = DeviationButLargest(before) * std::sqrt(1 + kOfMedian / count);
  return std::max(std::max(kMemoryBytes, 3 * error) / base, kMemoryShare);
}

}  // namespace ridgeline::regress
