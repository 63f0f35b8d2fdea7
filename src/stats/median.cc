#include "stats/median.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/split_mix.h"

namespace ridgeline::stats {
namespace {

constexpr size_t kFewest = 4;   // values
constexpr size_t kDraws = 200;  // of a bootstrap; with very many values fewer, down to kFewestDraws
constexpr size_t kFewestDraws = 100;
constexpr size_t kMostDrawn = 2'000'000;  // values, over all draws
constexpr int64_t kMostRepeats = 1'000'000;

class Random {
 public:
  size_t Below(size_t bound) { return static_cast<size_t>(numbers_.Next() % bound); }

 private:
  SplitMix64 numbers_{0};
};

void DrawRuns(Random& random, std::span<const std::vector<double>> runs, std::vector<double>& drawn) {
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::vector<double>& run = runs[random.Below(runs.size())];
    drawn.insert(drawn.end(), run.begin(), run.end());
  }
}

void DrawBlocks(Random& random, const std::vector<double>& run, size_t block, std::vector<double>& drawn) {
  while (drawn.size() < run.size()) {
    const size_t first = random.Below(run.size());
    for (size_t i = 0; i < block && drawn.size() < run.size(); ++i) drawn.push_back(run[(first + i) % run.size()]);
  }
}

// The 97.5 % quantile of Student's t distribution, interpolated between a table's degrees of freedom in their
// inverse.
double StudentT(double freedom) {
  static constexpr std::array<std::pair<double, double>, 13> kTable = {{{1, 12.706},
                                                                        {2, 4.303},
                                                                        {3, 3.182},
                                                                        {4, 2.776},
                                                                        {5, 2.571},
                                                                        {6, 2.447},
                                                                        {8, 2.306},
                                                                        {10, 2.228},
                                                                        {15, 2.131},
                                                                        {20, 2.086},
                                                                        {30, 2.042},
                                                                        {60, 2.000},
                                                                        {1e9, 1.960}}};
  for (size_t i = 1; i < kTable.size(); ++i) {
    const auto& [from, t_from] = kTable[i - 1];
    const auto& [to, t_to] = kTable[i];
    if (freedom > to) continue;
    const double share = (1 / from - 1 / std::max(freedom, from)) / (1 / from - 1 / to);
    return t_from + share * (t_to - t_from);
  }
  return kTable.back().second;
}

}  // namespace

double MedianOf(std::span<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double RobustSigma(std::span<const double> values) {
  if (values.empty()) return 0;
  std::vector<double> distances(values.begin(), values.end());
  const double median = MedianOf(distances);
  std::transform(values.begin(), values.end(), distances.begin(), [&](double v) { return std::abs(v - median); });
  return 1.4826 * MedianOf(distances);
}

std::optional<Estimate> EstimateMedian(std::span<const std::vector<double>> runs) {
  std::vector<double> all;
  std::vector<std::vector<double>> full;
  for (const std::vector<double>& run : runs) {
    all.insert(all.end(), run.begin(), run.end());
    if (!run.empty()) full.push_back(run);
  }
  const size_t count = all.size();
  const bool usable = std::all_of(all.begin(), all.end(), [](double v) { return std::isfinite(v) && v > 0; });
  if (count < kFewest || !usable) return std::nullopt;

  // Overlapping blocks tell as much as half as many more blocks that do not overlap (Meketon and Schmeiser, 1984).
  const auto block = static_cast<size_t>(2 * std::cbrt(static_cast<double>(count)) - 1);
  const bool several = full.size() > 1;
  const double blocks =
      several ? static_cast<double>(full.size()) : static_cast<double>(count) / static_cast<double>(block);
  const double freedom = several ? blocks - 1 : 1.5 * blocks - 1;
  const size_t draws = std::clamp(kMostDrawn / count, kFewestDraws, kDraws);
  Random random;
  double sum = 0;
  double squares = 0;
  const double value = MedianOf(all);
  for (size_t i = 0; i < draws; ++i) {
    all.clear();
    if (several) {
      DrawRuns(random, full, all);
    } else {
      DrawBlocks(random, full.front(), block, all);
    }
    const double log = std::log(MedianOf(all) / value);
    sum += log;
    squares += log * log;
  }
  const auto n = static_cast<double>(draws);
  const double variance = std::max(0.0, (squares - sum * sum / n) / (n - 1));
  return Estimate{value, std::sqrt(variance * blocks / (blocks - 1)), std::max(1.0, freedom)};
}

Estimate Ratio(const Estimate& of, const Estimate& to) {
  const double a = of.standard_error * of.standard_error;
  const double b = to.standard_error * to.standard_error;
  const double least = std::min(of.freedom, to.freedom);
  const double welch = a + b > 0 ? (a + b) * (a + b) / (a * a / of.freedom + b * b / to.freedom) : least;
  return {of.value / to.value, std::sqrt(a + b), std::max(least, welch)};
}

double Factor(const Estimate& estimate) { return std::exp(StudentT(estimate.freedom) * estimate.standard_error); }

int64_t RepeatsFor(const Estimate& estimate, int64_t repeats, double wanted) {
  const auto enough = [&](int64_t count) {
    const double times = static_cast<double>(count) / static_cast<double>(repeats);
    return Factor({1, estimate.standard_error / std::sqrt(times), estimate.freedom * times}) <= wanted;
  };
  int64_t low = repeats;  // not enough, unless the next line returns
  if (enough(low)) return low;
  int64_t high = std::min(2 * low, kMostRepeats);
  while (high < kMostRepeats && !enough(high)) {
    low = high;
    high = std::min(2 * high, kMostRepeats);
  }
  while (low + 1 < high) {
    const int64_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace ridgeline::stats
