// The progress of a run: counts of its points, and the time left.
#pragma once

#include <cstdint>
#include <string>

#include "collect/collect.h"
#include "driver/job_table.h"
#include "driver/progress.h"
#include "driver/sweep_points.h"
#include "predict/time_model.h"

namespace ridgeline::driver {

class Tally {
 public:
  // The time model of this run's launcher.
  predict::TimeModel& times() { return times_; }
  const predict::TimeModel& times() const { return times_; }

  // Starts the counts with all points of the sweep and those with a result from before. `runs`: of all points.
  void Begin(int64_t points, int64_t ok, int64_t failed, int64_t runs = 0);
  // A point needs this many runs.
  void ToDo(const RunSpec& spec, int64_t runs);
  // A run of this point is repeated.
  void Again(const RunSpec& spec);
  // A run was done, or will not be. `spent_ns`: the time that was seen, in case the result has none; 0: not seen.
  void Ran(const RunSpec& spec, const collect::Collected& result, int64_t spent_ns);
  // The point has ended in this run, and `runs_left` runs stay undone. A cancelled or lost point has no result that
  // counts (IsFinal).
  void Ended(const RunSpec& spec, RunStatus status, int64_t runs_left);

  const RunProgress& counts() const { return counts_; }
  // Returns the counts with what the jobs do now, as their files say. `window`: jobs that run at once; 0: all that run.
  RunProgress Now(JobTable& jobs, const SweepPoints& points, int64_t now_ns, int64_t window) const;

 private:
  predict::TimeModel times_;
  RunProgress counts_;
  double left_cost_ = 0;
  int64_t left_unknown_ = 0;  // runs of unknown cost
};

}  // namespace ridgeline::driver
