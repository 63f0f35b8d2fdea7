// The jobs that are planned and not submitted yet. Short points share a job.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "plan/plan.h"
#include "predict/time_model.h"

namespace ridgeline::driver {

// Takes one planned job at a time, until points turn out to be so short that submitting and collecting them one by one
// would be much of the time. Then it joins as many points with the same requirements as take about a second, at most
// doubling from job to job. A job runs its points one after another, each in processes of its own, so their
// measurements do not change.
class PendingJobs {
 public:
  // `times` must outlive this object.
  explicit PendingJobs(const predict::TimeModel& times) : times_(times) {}

  bool empty() const { return jobs_.empty(); }
  int64_t size() const { return static_cast<int64_t>(jobs_.size()); }
  void Add(Job job);
  const Job& Next() const { return jobs_.front().job; }  // REQUIRES: !empty()

  // Returns the next job: a planned one, joined by the points of later jobs that share it. A joined job gets a key of
  // its own, made with `options`. REQUIRES: !empty().
  Job Take(const plan::PlanOptions& options);

  // A job of `points` points ended, so the next may have twice as many. Is never called for a launcher with a queue of
  // its own; then each planned job stays as it is.
  void JobEnded(int64_t points);

 private:
  struct Planned {
    Job job;
    double cost;
  };
  const predict::TimeModel& times_;
  std::deque<Planned> jobs_;
  size_t most_points_ = 1;  // most planned jobs that may share one
};

}  // namespace ridgeline::driver
