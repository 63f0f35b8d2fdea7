// Sweeps, jobs and results as a run would make them.
#pragma once

#include <string>
#include <vector>

#include "run/presets.h"
#include "run/spec.h"
#include "store/store.h"

namespace ridgeline::samples {

// `count` points that differ in their seed.
inline std::vector<Point> Points(size_t count) {
  std::vector<Point> points;
  for (size_t i = 0; i < count; ++i) {
    RunSpec spec = FamilyDefaults(ModelFamily::kLlama);
    ApplyPreset(*FindPreset("llama-10m"), spec);
    spec.seed = static_cast<int64_t>(i);
    Canonicalize(spec);
    points.push_back({PointId(spec), spec});
  }
  return points;
}

inline store::SweepRecord Sweep(const std::string& name) {
  return {name, "a sweep", "sweep.yaml", "name: " + name + "\n", 5};
}

inline store::JobRecord Job(const std::string& key, const std::string& sweep, const std::vector<Point>& points) {
  store::JobRecord job;
  job.key = key;
  job.sweep = sweep;
  job.launcher = "local";
  job.job_dir = "/nowhere/" + key;
  job.created_unix_ns = 10;
  for (const Point& point : points) job.points.push_back({point.id});
  return job;
}

inline RunResult Result(const std::string& point_id, const RunEnd& end = RunStatus::kOk) {
  RunResult result;
  result.point_id = point_id;
  result.status = end.status;
  result.reason = end.reason;
  result.message = end.status == RunStatus::kOk ? "" : "it ended";
  if (end.status == RunStatus::kSkippedPredictedOom) result.provenance = Provenance::kPredicted;
  result.device = "a processor";
  if (end.status == RunStatus::kOk) {
    result.parameters = 10'000'000;
    result.tokens_per_step = 512;
    result.throughput = {1000.5, 900.25};
    result.step_ns = {{900, 500, 510}, 505, 510, 0.01};
    result.loss = {9.5, 9.25, 9.0};
    result.grad_norm = {1.5, 1.25, 1.0};
    result.skipped_steps = 2;
    result.memory = {600, {{"parameters", 100}, {"activations", 500}}, 1000};
    result.flops = {1e9, 1.5e9, 2e9};
  }
  result.started_unix_ns = 100;
  result.ended_unix_ns = 200;
  result.environment = {{"cpu", "a processor"}, {"command", "ridgeline-train --spec " + point_id}};
  return result;
}

// Submits a job of these points and ends each point like this.
inline void RunJob(store::Store& store, const std::string& key, const std::string& sweep,
                   const std::vector<Point>& points, const RunEnd& end) {
  store::JobRecord job = Job(key, sweep, points);
  job.measured_as = store.Progress(sweep).sweep.measured_as;
  store.RecordIntents({&job, 1});
  store.MarkSubmitted(key, "native-" + key, 20);
  for (const store::JobRecord& live : store.LiveJobs()) {
    if (live.key != key) continue;
    std::vector<store::NewResult> results;
    for (const store::JobRecord::Point& point : live.points)
      results.push_back({Result(point.id, end), key, point.attempt});
    store.AddResults(results);
  }
  store.SetJobState(key, store::JobRecord::State::kEnded, {{"exit_code", "0"}}, 30);
}

// The single value that a query returns.
inline Cell Value(store::Store& store, const std::string& sql) {
  const Table table = store.Query(sql);
  return table.rows.size() == 1 && table.rows[0].size() == 1 ? table.rows[0][0] : Cell("not one value");
}

}  // namespace ridgeline::samples
