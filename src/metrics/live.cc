#include "metrics/live.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <unordered_map>

#include "base/json.h"
#include "driver/live_job.h"
#include "predict/time_model.h"
#include "run/spec.h"

namespace ridgeline::metrics {
namespace {

// If a sweep has more points than this, its time left is not estimated, because each point's cost must be read.
constexpr int64_t kMostEstimated = 2000;

std::string Evidence(const store::JobRecord& job, const char* name) {
  const auto found = job.evidence.find(name);
  return found == job.evidence.end() ? "" : found->second;
}

void AddJob(const store::JobRecord& record, SweepNow& now) {
  if (record.state != store::JobRecord::State::kRunning) {
    ++now.queued_jobs;
    const bool first = record.submitted_unix_ns > 0 &&
                       (now.queued_since_unix_ns == 0 || record.submitted_unix_ns < now.queued_since_unix_ns);
    if (!first) return;
    now.queued_since_unix_ns = record.submitted_unix_ns;
    now.queued_for =
        driver::QueueText(Evidence(record, "pending"), std::atoll(Evidence(record, "expected_unix_s").c_str()));
    return;
  }
  ++now.running_jobs;
  driver::LiveJob job;
  job.record = record;
  const std::string said = driver::CurrentProgress(job);
  if (job.current == job.record.points.size()) return;
  ++now.running_points;
  if (now.running.size() == StoreNow::kMostRunning) return;
  now.running.push_back({job.record.points[job.current].id, record.key, driver::ParseProgress(said)});
}

// Estimates as the driver does (driver/tally.h), from the store and the running points.
int64_t LeftNs(store::Store& store, const SweepNow& now, const std::string& launcher) {
  const std::string& sweep = now.progress.sweep.name;
  if (now.progress.points > kMostEstimated) return 0;
  predict::TimeModel times;
  for (const store::MeasuredPoint& point : store.MeasuredPoints(launcher, predict::TimeModel::kRemembered)) {
    times.Took(predict::RelativeCost(point.spec), static_cast<double>(point.duration_ns) / 1e9);
  }
  std::unordered_map<std::string, double> share_done;
  for (const RunningPoint& point : now.running) {
    if (!point.progress) continue;
    share_done[point.point_id] = static_cast<double>(point.progress->step) / static_cast<double>(point.progress->steps);
  }
  const std::vector<std::string> finished_ids = store.FinishedPoints(sweep);
  const std::set<std::string> finished(finished_ids.begin(), finished_ids.end());
  const std::map<std::string, int64_t> repeats_done = store.RepeatsSoFar(sweep);
  double left = 0;
  const Table points = store.Query(
      "SELECT p.id, p.spec FROM sweep_points AS s JOIN points AS p ON p.id = s.point_id WHERE s.sweep = :sweep",
      {{"sweep", sweep}});
  for (const auto& row : points.rows) {
    const std::string id = CellText(row[0]);
    if (finished.contains(id)) continue;
    const RunSpec spec = DecodeSpec(ParseJson(CellText(row[1]), "a point"), "a point");
    const auto done = repeats_done.find(id);
    const auto runs = static_cast<double>(spec.repeats - (done == repeats_done.end() ? 0 : done->second));
    const double cost = predict::RelativeCost(spec);
    if (cost == 0) return 0;  // the size of its model is unknown
    left += cost * std::max(runs - share_done[id], 0.0);
  }
  return times.LeftNs(left, 0, std::max<int64_t>(now.running_jobs, 1));
}

}  // namespace

StoreNow LookNow(store::Store& store, const std::filesystem::path& db, const Clock& clock) {
  StoreNow seen;
  seen.driver = driver::RunningDriver(db);
  seen.unix_ns = clock.UnixNs();
  std::map<std::string, SweepNow*> of;
  for (store::SweepProgress& progress : store.Sweeps()) {
    seen.sweeps.emplace_back();
    seen.sweeps.back().progress = std::move(progress);
  }
  for (SweepNow& sweep : seen.sweeps) of[sweep.progress.sweep.name] = &sweep;
  std::map<std::string, std::string> launchers;
  for (store::JobRecord& job : store.LiveJobs()) {
    const auto sweep = of.find(job.sweep);
    if (sweep == of.end()) continue;
    // A driver already stores results as they come.
    if (!seen.driver) driver::TakeResults(job);
    AddJob(job, *sweep->second);
    launchers.emplace(job.sweep, job.launcher);
  }
  for (const auto& [sweep, launcher] : launchers) of[sweep]->left_ns = LeftNs(store, *of[sweep], launcher);
  return seen;
}

}  // namespace ridgeline::metrics
