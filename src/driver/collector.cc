#include "driver/collector.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include <fmt/format.h>

#include "base/text.h"
#include "driver/progress.h"
#include "driver/withdraw.h"

namespace ridgeline::driver {

int64_t Collector::CollectJobs(const std::vector<collect::JobToCollect>& to_collect, const std::vector<LiveJob*>& of,
                               Why why) {
  const std::vector<collect::Collected> collected = collect::Collect(parts_.store, to_collect, parts_.clock.UnixNs());
  std::unordered_map<std::string, LiveJob*> job_of;
  for (LiveJob* job : of) {
    for (const store::JobRecord::Point& point : job->record.points) job_of.emplace(point.id, job);
  }
  std::unordered_map<LiveJob*, int64_t> counts;
  for (const collect::Collected& result : collected) ++counts[job_of.at(result.point_id)];
  for (const collect::Collected& result : collected) {
    LiveJob& job = *job_of.at(result.point_id);
    // 0: submitted in an earlier run. 1: so short that the clock did not move.
    const int64_t spent_ns =
        job.collected_ns == 0 ? 0 : std::max<int64_t>(1, (Now() - job.collected_ns) / counts[&job]);
    for (store::JobRecord::Point& point : job.record.points) {
      point.has_result = point.has_result || point.id == result.point_id;
    }
    PointEnded(result, job.record.measured_as, spent_ns, why);
    if (!job.withdrawn.empty() || why == Why::kRefused) continue;
    for (const FaultWatch::Finding& found : faults_.PointEnded(job.record.key, result, job.kept_off)) {
      parts_.observer.Note(found.note);
      if (room_.queues) WithdrawQueued(jobs_, parts_, found.withdrawn);
    }
  }
  for (const auto& entry : counts) {
    if (entry.first->collected_ns != 0) entry.first->collected_ns = Now();
  }
  return static_cast<int64_t>(collected.size());
}

void Collector::PointEnded(const collect::Collected& result, const MeasurementKey& measured_as, int64_t spent_ns,
                           Why why) {
  const Point* point = points_.Find(result.point_id);
  if (point == nullptr) return;  // a point of another sweep, in a job that also holds one of ours
  const std::string label = points_.NameOf(*point);
  const std::string outcome = OutcomeText(result, point->spec.repeats);
  if (measured_as != points_.KeyOf(*point)) {
    parts_.observer.Note(fmt::format("{}: {}; measured for the campaign {}, as {}", label, outcome,
                                     PrintableLine(measured_as.campaign), PrintableLine(measured_as.setup)));
    return;
  }
  tally_.Ran(point->spec, result, spent_ns);
  const int64_t runs_left = result.repeat > 0 ? point->spec.repeats - result.repeat : 0;
  if (result.end.status == RunStatus::kOk && runs_left > 0) {
    planner_.RunAgain(*point);
    parts_.observer.Note(fmt::format("{} {}: {}", EndedOf(tally_.counts()), label, outcome));
    return;
  }
  const auto pause_ns =
      !faults_.given_up().empty() ? std::nullopt : retries_.RunAgainAfterNs(result.point_id, result.end, result.began);
  if (pause_ns) {
    tally_.Again(point->spec);
    planner_.RunAgain(*point, /*counted=*/true, Now() + *pause_ns);
    if (why == Why::kRan) parts_.observer.Note(fmt::format("{}: {}; it is run again", label, outcome));
    return;
  }
  tally_.Ended(point->spec, result.end.status, runs_left);
  if (why == Why::kRefused) return;  // the refusal was reported once, for all of them
  parts_.observer.PointEnded(label, outcome, tally_.counts());
}

}  // namespace ridgeline::driver
