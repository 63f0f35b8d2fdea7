#include "driver/planner.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "driver/counting_line.h"
#include "plan/show.h"

namespace ridgeline::driver {

plan::PlanOptions PlanOptionsOf(const DriverOptions& options) {
  plan::PlanOptions plan;
  plan.node = options.node;
  plan.runs_here = options.runs_here;
  plan.jobs_dir = options.jobs_dir;
  plan.trainer = options.trainer;
  plan.include_oom = options.include_oom;
  return plan;
}

Planner::Planner(const sweep::Sweep& sweep, const DriverOptions& options, const DriverParts& parts,
                 const SweepPoints& points, Tally& tally)
    : sweep_(sweep), parts_(parts), points_(points), tally_(tally), pending_(tally.times()) {
  options_ = PlanOptionsOf(options);
  tally_.times() = options.times;
}

void Planner::Begin() {
  parts_.store.PutSweep(
      {sweep_.name, sweep_.description, sweep_.file.string(), sweep_.text, parts_.clock.UnixNs(), points_.key()},
      points_.all(), [&](const Point& point) { return points_.KeyOf(point).setup; });
  options_.repeats = parts_.store.RepeatsSoFar(sweep_.name);
  // Makes the jobs' keys differ from those of any other store.
  options_.key_name = fmt::format("{}@{}", sweep_.name, parts_.store.Progress(sweep_.name).sweep.created_unix_ns);
  constexpr auto kMost = static_cast<int64_t>(predict::TimeModel::kRemembered);
  for (const store::MeasuredPoint& point : parts_.store.MeasuredPoints(parts_.launcher.name(), kMost)) {
    tally_.times().Took(predict::RelativeCost(point.spec), static_cast<double>(point.duration_ns) / 1e9);
  }
}

int64_t Planner::JudgeAnew() {
  judged_ = parts_.store.PredictedNotToFit(sweep_.name);
  return std::ssize(judged_);
}

Planner::Skipped Planner::PlanAllBut(std::set<std::string> taken) {
  for (const auto& [id, by] : judged_) taken.erase(id);
  for (const Again& again : again_) taken.insert(again.point.id);
  std::vector<Point> todo;
  std::copy_if(points_.all().begin(), points_.all().end(), std::back_inserter(todo),
               [&](const Point& point) { return !taken.contains(point.id); });
  return PlanPoints(todo, {});
}

void Planner::PlanAgain() {
  std::vector<Point> points;
  std::set<std::string> counted;
  const int64_t now_ns = parts_.clock.MonotonicNs();
  const auto due = std::stable_partition(again_.begin(), again_.end(),
                                         [&](const Again& again) { return again.not_before_ns > now_ns; });
  const std::vector<Again> ready(due, again_.end());
  again_.erase(due, again_.end());
  for (const Again& again : ready) {
    points.push_back(again.point);
    if (again.counted) counted.insert(again.point.id);
  }
  PlanPoints(points, counted);
}

Planner::Skipped Planner::PlanPoints(const std::vector<Point>& points, const std::set<std::string>& counted) {
  if (points.empty()) return {};
  options_.attempts = parts_.store.Attempts(sweep_.name);
  options_.repeats = parts_.store.RepeatsSoFar(sweep_.name);
  options_.times = tally_.times();
  CountingLine line("planning", parts_.clock, [&](const std::string& text) { parts_.observer.Working(text); });
  plan::Plan plan = plan::MakePlan(sweep_, points, options_, parts_.forecaster, [&](size_t done, size_t of) {
    parts_.ThrowIfInterrupted();
    line.At(done, of);
  });
  for (const std::string& warning : plan.warnings) {
    if (warned_.insert(warning).second) parts_.observer.Note("warning: " + warning);
  }
  std::vector<store::NewResult> skipped;
  std::set<std::string> taken_back;
  for (const auto& [id, by] : judged_) taken_back.insert(id);
  for (RunResult& result : plan.skipped) {
    result.ended_unix_ns = parts_.clock.UnixNs();
    const MeasurementKey key = points_.KeyOf(*points_.Find(result.point_id));
    tally_.Ended(points_.Find(result.point_id)->spec, result.status, 0);
    const auto before = judged_.find(result.point_id);
    if (before != judged_.end() && before->second == store::Store::PredictionOf(result)) {
      taken_back.erase(result.point_id);
    } else {
      skipped.push_back({std::move(result), "", 0, key});
    }
  }
  judged_.clear();
  parts_.store.TakeBackPredictions(sweep_.name, taken_back);
  parts_.store.AddResults(skipped);
  if (!plan.jobs.empty() && parts_.before_jobs) parts_.before_jobs();
  for (Job& job : plan.jobs) {
    for (const JobPoint& point : job.points) {
      if (!counted.contains(point.id)) tally_.ToDo(point.spec, point.spec.repeats - point.repeat + 1);
    }
    pending_.Add(std::move(job));
  }
  return {std::ssize(plan.skipped), plan::OutOfMemoryWhy(plan)};
}

int64_t Planner::RunsLeft(const Point& point) const {
  const auto had = options_.repeats.find(point.id);
  return point.spec.repeats - (had == options_.repeats.end() ? 0 : had->second);
}

LiveJob Planner::Open() {
  Job job = pending_.Take(options_);
  // All points of a job have the same key.
  const MeasurementKey measured_as = points_.KeyOf(*points_.Find(job.points.front().id));
  return OpenJob(std::move(job), parts_.launcher.name(), measured_as, options_.attempts, parts_.clock.UnixNs());
}

}  // namespace ridgeline::driver
