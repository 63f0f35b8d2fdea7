// The jobs that are planned and not handed over yet. Points that prove short share a job.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "plan/plan.h"
#include "predict/time_model.h"

namespace ridgeline {

// One planned job at a time, until points that ask for the same prove so short that submitting and collecting them one
// by one would be much of the time: then as many as take about a second, at most doubling from job to job. A job runs
// its points one after another, each in processes of its own, so what they measure does not change.
class PendingJobs {
 public:
  // `times` must outlive it.
  explicit PendingJobs(const TimeModel& times) : times_(times) {}

  bool empty() const { return jobs_.empty(); }
  int64_t size() const { return static_cast<int64_t>(jobs_.size()); }
  void Add(Job job);

  // The next job: a planned one, with the points of those behind it that share it, and so under its own key, by
  // `options`. REQUIRES: !empty().
  Job Take(const PlanOptions& options);

  // A job of so many points ended: the next may have twice as many. Where this is never said, as of a launcher with a
  // queue of its own, each planned job stays as it is.
  void JobEnded(int64_t points);

 private:
  struct Planned {
    Job job;
    double cost;
  };
  const TimeModel& times_;
  std::deque<Planned> jobs_;
  size_t most_points_ = 1;  // of planned jobs that share one
};

}  // namespace ridgeline
