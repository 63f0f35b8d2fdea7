#include "driver/tally.h"

#include <algorithm>

namespace ridgeline::driver {
namespace {

constexpr size_t kShownJobs = 3;

}  // namespace

void Tally::Begin(int64_t points, int64_t ok, int64_t failed, int64_t runs) {
  counts_.runs = runs;
  counts_.total = points;
  counts_.done = ok;
  counts_.failed = failed;
}

void Tally::ToDo(const RunSpec& spec, int64_t runs) {
  const double cost = predict::RelativeCost(spec);
  left_cost_ += static_cast<double>(runs) * cost;
  counts_.runs_left += runs;
  if (cost == 0) left_unknown_ += runs;
}

void Tally::Again(const RunSpec& spec) { ToDo(spec, 1); }

void Tally::Ran(const RunSpec& spec, const collect::Collected& result, int64_t spent_ns) {
  const double cost = predict::RelativeCost(spec);
  ToDo(spec, -1);
  if (result.end.status != RunStatus::kOk) return;
  times_.Took(cost, static_cast<double>(result.duration_ns > 0 ? result.duration_ns : spent_ns) / 1e9);
}

void Tally::Ended(const RunSpec& spec, RunStatus status, int64_t runs_left) {
  if (store::IsFinal(status)) ++(status == RunStatus::kOk ? counts_.done : counts_.failed);
  if (runs_left > 0) ToDo(spec, -runs_left);
  if (!store::IsFinal(status)) counts_.runs_left += 1 + runs_left;
}

RunProgress Tally::Now(JobTable& jobs, const SweepPoints& points, int64_t now_ns, int64_t window) const {
  RunProgress progress = counts_;
  int64_t running_ns = 0;
  int64_t running_jobs = 0;
  for (LiveJob& job : jobs) {
    if (job.phase != launch::JobPhase::kRunning) {
      ++progress.queued_jobs;
      if (progress.queued_for.empty()) progress.queued_for = QueueText(job.pending, job.expected_s);
      continue;
    }
    ++running_jobs;
    if (job.collected_ns > 0) running_ns += now_ns - job.collected_ns;
    if (progress.live.size() == kShownJobs) continue;
    const std::string text = CurrentProgress(job);
    if (job.current == job.record.points.size()) continue;
    if (const Point* point = points.Find(job.record.points[job.current].id)) {
      progress.live.push_back({points.NameOf(*point), ParseProgress(text)});
    }
  }
  if (left_unknown_ == 0) {
    progress.left_ns = times_.LeftNs(left_cost_, running_ns, window > 0 ? window : running_jobs);
  }
  return progress;
}

}  // namespace ridgeline::driver
