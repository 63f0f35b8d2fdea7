// Stores with measurements of several campaigns.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "run/spec.h"
#include "store/store.h"
#include "tests/store/samples.h"

namespace ridgeline::testing {

// Points that differ in their seed, with five measured steps after one of warm-up.
inline std::vector<Point> FewStepPoints(size_t count) {
  std::vector<Point> points = samples::Points(count);
  for (Point& point : points) {
    point.spec.warmup_steps = 1;
    point.spec.steps = 5;
    point.id = PointId(point.spec);
  }
  return points;
}

// A successful result with these step times, one for each of its runs, by a build of this commit.
inline RunResult Timed(const Point& point, const std::vector<int64_t>& runs_ns, const std::string& commit = {}) {
  RunResult result = samples::Result(point.id);
  result.step_ns.all_ns = {900'000'000};
  for (const int64_t ns : runs_ns) result.step_ns.all_ns.insert(result.step_ns.all_ns.end(), 5, ns);
  if (!commit.empty()) result.environment["git_commit"] = commit;
  return result;
}

// One measurement of each point for the campaign, with its outcome.
inline void Measure(store::Store& store, const std::string& campaign, const std::vector<Point>& points,
                    const std::function<RunResult(const Point&)>& end) {
  store::SweepRecord sweep = samples::Sweep("test");
  sweep.measured_as.campaign = campaign;
  store.PutSweep(sweep, points);
  store::JobRecord job = samples::Job("job-" + campaign, "test", points);
  job.measured_as = sweep.measured_as;
  store.RecordIntents({&job, 1});
  store.MarkSubmitted(job.key, "native-" + job.key, 20);
  std::vector<store::NewResult> results;
  for (const store::JobRecord& live : store.LiveJobs()) {
    for (size_t i = 0; i < points.size(); ++i) results.push_back({end(points[i]), live.key, live.points[i].attempt});
  }
  store.AddResults(results);
  store.SetJobState(job.key, store::JobRecord::State::kEnded, {{"exit_code", "0"}}, 30);
}

}  // namespace ridgeline::testing
