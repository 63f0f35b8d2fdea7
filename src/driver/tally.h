// How far a run is: its points counted, and the time left.
#pragma once

#include <cstdint>
#include <string>

#include "collect/collect.h"
#include "driver/job_table.h"
#include "driver/progress.h"
#include "driver/sweep_points.h"
#include "predict/time_model.h"

namespace ridgeline {

class Tally {
 public:
  // How long points take on this run's launcher.
  TimeModel& times() { return times_; }
  const TimeModel& times() const { return times_; }

  // All points of the sweep count, and those that have a result before the run begins. `runs`: of all of them.
  void Begin(int64_t points, int64_t ok, int64_t failed, int64_t runs = 0);
  // A point of which so many runs are to be done.
  void ToDo(const RunSpec& spec, int64_t runs);
  // One of them is done once more.
  void Again(const RunSpec& spec);
  // One was done, or will not be. spent_ns: what was seen of that, where its result does not say; 0: nothing.
  void Ran(const RunSpec& spec, const Collected& result, int64_t spent_ns);
  // And that was its last in this run: so many are left undone. A point that was cancelled or lost has no result that
  // counts (IsFinal).
  void Ended(const RunSpec& spec, RunStatus status, int64_t runs_left);

  const RunProgress& counts() const { return counts_; }
  // With what the jobs do now, as their files say. `window`: jobs that run at once; 0: whatever runs.
  RunProgress Now(JobTable& jobs, const SweepPoints& points, int64_t now_ns, int64_t window) const;

 private:
  TimeModel times_;
  RunProgress counts_;
  double left_cost_ = 0;
  int64_t left_unknown_ = 0;  // runs whose cost nobody knows
};

}  // namespace ridgeline
