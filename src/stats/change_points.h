// Finds where a history of runs changed, and at which commit.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ridgeline::stats {

struct HistoryRun {
  std::string commit;
  double log_step_time = 0;  // natural logarithm of its median steady step's time
};

struct ChangePoint {
  std::string commit;  // the first commit after the change
  size_t first = 0;    // index of that commit's first run in the history
  double change = 0;   // of ln(median): the runs until the next change, minus those since the change before
};

// Returns the changes of level in a history of one point on one fingerprint, oldest run first. Binary segmentation cuts
// where Pettitt's statistic is largest, while its p-value is below 1 % (Pettitt, 1979). The statistic uses ranks, so a
// single run makes no change. Consecutive runs of one commit are not cut apart, so each change has a first commit. A
// change shows after about fifteen runs. Time grows with the square of the history's length.
std::vector<ChangePoint> ChangePoints(std::span<const HistoryRun> history);

}  // namespace ridgeline::stats
