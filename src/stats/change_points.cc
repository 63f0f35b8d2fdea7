#include "stats/change_points.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "stats/median.h"

namespace ridgeline::stats {
namespace {

constexpr double kLevel = 0.01;

double MedianStepTime(std::span<const HistoryRun> runs) {
  std::vector<double> values;
  for (const HistoryRun& run : runs) values.push_back(run.log_step_time);
  return MedianOf(values);
}

// Returns how many of `runs` are faster than `run` minus how many are slower.
int64_t Rank(const HistoryRun& run, std::span<const HistoryRun> runs) {
  int64_t rank = 0;
  for (const HistoryRun& other : runs) {
    rank += static_cast<int64_t>(run.log_step_time > other.log_step_time) -
            static_cast<int64_t>(run.log_step_time < other.log_step_time);
  }
  return rank;
}

// Adds the positions where the runs from `begin` to `end` are cut, counted from `begin`.
void Cut(std::span<const HistoryRun> history, size_t begin, size_t end, std::vector<size_t>& cuts) {
  const auto runs = history.subspan(begin, end - begin);
  int64_t sum = 0;
  int64_t largest = 0;
  size_t place = 0;
  for (size_t i = 1; i < runs.size(); ++i) {
    sum += Rank(runs[i - 1], runs);
    if (runs[i].commit == runs[i - 1].commit || std::abs(sum) <= largest) continue;
    largest = std::abs(sum);
    place = begin + i;
  }
  const auto n = static_cast<double>(runs.size());
  const auto statistic = static_cast<double>(largest);
  if (largest == 0 || 2 * std::exp(-6 * statistic * statistic / (n * n * n + n * n)) >= kLevel) return;
  Cut(history, begin, place, cuts);
  cuts.push_back(place);
  Cut(history, place, end, cuts);
}

}  // namespace

std::vector<ChangePoint> ChangePoints(std::span<const HistoryRun> history) {
  std::vector<size_t> cuts = {0};
  Cut(history, 0, history.size(), cuts);
  cuts.push_back(history.size());
  std::vector<ChangePoint> changes;
  for (size_t i = 1; i + 1 < cuts.size(); ++i) {
    const double before = MedianStepTime(history.subspan(cuts[i - 1], cuts[i] - cuts[i - 1]));
    const double after = MedianStepTime(history.subspan(cuts[i], cuts[i + 1] - cuts[i]));
    changes.push_back({history[cuts[i]].commit, cuts[i], after - before});
  }
  return changes;
}

}  // namespace ridgeline::stats
