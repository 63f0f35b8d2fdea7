#include "driver/pending.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "driver/patience.h"

namespace ridgeline::driver {
void PendingJobs::Add(Job job) {
  double cost = 0;
  for (const JobPoint& point : job.points) cost += predict::RelativeCost(point.spec);
  jobs_.push_back({std::move(job), cost});
}

Job PendingJobs::Take(const plan::PlanOptions& options) {
  std::vector<double> costs;
  size_t points = 0;
  for (const Planned& planned : jobs_) {
    points += planned.job.points.size();
    if (points > most_points_ || !AskForTheSame(planned.job, jobs_.front().job)) break;
    costs.push_back(planned.cost);
  }
  const size_t together = std::max<size_t>(1, times_.FitWithin(kSharedJobSeconds, costs));
  Job job = std::move(jobs_.front().job);
  for (size_t i = 1; i < together; ++i) {
    std::vector<JobPoint>& more = jobs_[i].job.points;
    std::move(more.begin(), more.end(), std::back_inserter(job.points));
  }
  jobs_.erase(jobs_.begin(), jobs_.begin() + static_cast<std::ptrdiff_t>(together));
  plan::NameJob(job, options);
  return job;
}

void PendingJobs::JobEnded(int64_t points) {
  if (points > 0) most_points_ = static_cast<size_t>(std::min(2 * points, kMostSharedPoints));
}

}  // namespace ridgeline::driver
