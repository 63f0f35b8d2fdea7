#include "bench/many_runs.h"

#include <utility>
#include <vector>

#include "run/measurement.h"
#include "run/names.h"
#include "run/spec.h"

namespace ridgeline {
namespace {

// 10 batch sizes x 5 policies x 2,000 sequence lengths of one model on one machine. A tenth run out of memory.
void Fill(store::Store& store) {
  static constexpr const char* kPolicies[] = {"none", "selective", "full", "full/2", "full/4"};
  std::vector<Problem> problems;
  const RunSpec base = BuildSpec({{"model", "llama-1b"}}, problems);
  std::vector<Point> points;
  std::vector<store::NewResult> results;
  for (int64_t i = 0; i < kRuns; ++i) {
    RunSpec spec = base;
    spec.batch_size = 1 + i % 10;
    spec.checkpointing = *ParseCheckpointing(kPolicies[i / 10 % 5]);
    spec.seq_length = 128 + i / 50;
    points.push_back({PointId(spec), spec});
    RunResult result;
    result.point_id = points.back().id;
    result.environment = {{"cpu", "Example CPU, 2 cores"},
                          {"flags", std::string(600, 'f')},
                          {"kernel", "Linux 6.1.0"},
                          {"command", "ridgeline-train --spec points/" + result.point_id + "/spec.json"}};
    if (i % 10 == 9) {
      result.status = RunStatus::kOomHost;
      result.message = "the plan does not fit";
      result.evidence = {{"wanted_bytes", "30200000000"}, {"available_bytes", "24000000000"}};
    } else {
      result.status = RunStatus::kOk;
      result.device = "Example CPU, 2 cores";
      result.tokens_per_step = spec.batch_size * spec.seq_length;
      result.throughput = {1000.0 + static_cast<double>(i), 900.0 + static_cast<double>(i)};
      result.step_ns = {{}, 500'000'000 + i, 510'000'000 + i, 0.01};
      result.memory.by_category = {{"parameters", 4'000'000'000}, {"gradients", 4'000'000'000},
                                   {"optimizer", 8'000'000'000},  {"activations", 1'000'000'000 + i},
                                   {"workspace", 30'000'000},     {"logits", 5'000'000}};
      result.memory.planned_peak_bytes = 17'035'000'000 + i;
      result.memory.rss_peak_bytes = 17'227'000'000 + i;
    }
    results.push_back({std::move(result), "", 0});
  }
  store.PutSweep({"bench", "", "bench.yaml", "name: bench\n", 1}, points);
  store.AddResults(results);
}

// Half of the runs are in fp32, half in bf16, with the same 51 seeds.
void FillCurves(store::Store& store) {
  std::vector<Problem> problems;
  std::vector<Point> points;
  std::vector<store::NewResult> results;
  for (int64_t i = 0; i < kCurves; ++i) {
    const RunSpec spec = BuildSpec({{"model", "llama-5m"},
                                    {"data", "/text"},
                                    {"steps", 1000},
                                    {"precision", i % 2 == 0 ? "fp32" : "bf16"},
                                    {"seed", i / 2}},
                                   problems);
    points.push_back({PointId(spec), spec});
    RunResult result;
    result.point_id = points.back().id;
    result.status = RunStatus::kOk;
    for (int64_t step = 1; step <= 1000; ++step) {
      result.loss.push_back(2 + 40 / static_cast<double>(10 + step) + 1e-5 * static_cast<double>(step * 7919 % 101));
      result.grad_norm.push_back(1 + 1e-3 * static_cast<double>(step * 31 % 97));
    }
    results.push_back({std::move(result), "", 0});
  }
  store.PutSweep({"curves", "", "bench.yaml", "name: curves\n", 1}, points);
  store.AddResults(results);
}

}  // namespace

void FillNights(store::Store& store) {
  constexpr int64_t kNights = 500;
  std::vector<Problem> problems;
  const RunSpec base = BuildSpec({{"model", "llama-1b"}}, problems);
  std::vector<Point> points;
  for (int64_t i = 0; i < kRuns / kNights; ++i) {
    RunSpec spec = base;
    spec.batch_size = 1 + i;
    points.push_back({PointId(spec), spec});
  }
  for (int64_t night = 0; night < kNights; ++night) {
    const MeasurementKey as = {"night-" + std::to_string(night), DefaultSetup()};
    store.PutSweep({"nights", "", "bench.yaml", "name: nights\n", 1, as}, points);
    std::vector<store::NewResult> results;
    for (const Point& point : points) {
      RunResult result;
      result.point_id = point.id;
      result.status = RunStatus::kOk;
      result.device = "Example CPU, 2 cores";
      result.environment = {{"cpu", "Example CPU, 2 cores"}, {"git_commit", std::to_string(night) + "0123abcdef"}};
      result.throughput = {1000, 900};
      for (int64_t step = 0; step < 7; ++step) {
        result.step_ns.all_ns.push_back((night < 300 ? 100'000'000 : 105'000'000) +
                                        10'007 * ((night * 7 + step) % 101));
      }
      result.step_ns.median_ns = result.step_ns.all_ns[3];
      result.memory.planned_peak_bytes = 17'035'000'000;
      result.memory.rss_peak_bytes = 17'227'000'000;
      result.ended_unix_ns = (1'700'000'000 + 86'400 * night) * 1'000'000'000;
      results.push_back({std::move(result), "", 0, as});
    }
    store.AddResults(results);
  }
}

void FillRuns(store::Store& store) {
  Fill(store);
  FillCurves(store);
}

}  // namespace ridgeline
