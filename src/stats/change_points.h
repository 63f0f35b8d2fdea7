// Where a history of runs changed, and by which commit.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ridgeline {

struct HistoryRun {
  std::string commit;
  double log_step_time = 0;  // natural logarithm of its median steady step's time
};

struct ChangePoint {
  std::string commit;  // the first after it
  size_t first = 0;    // its first run's place in the history
  double change = 0;   // of the median's logarithm, from the runs since the change before to those until the next
};

// The changes of level in a history of one point on one fingerprint, the oldest run first: binary segmentation, cut
// where Pettitt's statistic is largest, as long as its chance is below 1 % (Pettitt, 1979; by ranks, so that no single
// run makes a change). Runs of one commit that follow each other are not cut, so a change has one commit that is its
// first. A change shows once some fifteen runs are in sight of it. Takes time with the square of the history's length.
std::vector<ChangePoint> ChangePoints(std::span<const HistoryRun> history);

}  // namespace ridgeline
