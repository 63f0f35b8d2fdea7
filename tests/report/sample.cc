#include "tests/report/sample.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

#include "base/files.h"
#include "run/presets.h"

namespace ridgeline::report_sample {

RunResult& Runs::Add(const Json& values, const RunEnd& end) {
  std::vector<Problem> problems;
  const RunSpec spec = BuildSpec(values, problems);
  for (const Problem& problem : problems) ADD_FAILURE() << problem.field << ": " << problem.message;
  points_.push_back({PointId(spec), spec});
  RunResult result;
  result.point_id = points_.back().id;
  result.status = end.status;
  result.reason = end.reason;
  result.environment = {{"command", "ridgeline-train --spec " + std::to_string(points_.size()) + ".json"}};
  if (end.status == RunStatus::kOk) {
    using Policy = Checkpointing::Policy;
    const Policy policy = spec.checkpointing.policy;
    const double kept = policy == Policy::kNone ? 1 : policy == Policy::kSelective ? 0.5 : 0.125;
    const double slower = policy == Policy::kNone ? 1 : policy == Policy::kSelective ? 1.0625 : 1.25;
    const auto batch = static_cast<double>(spec.batch_size);
    const double step_s = 0.25 * (1 + batch) * slower;
    result.device = "Example CPU, 2 cores";
    result.parameters = 25'000'000;
    result.tokens_per_step = spec.batch_size * spec.seq_length;
    result.throughput.steady_tokens_per_s = static_cast<double>(result.tokens_per_step) / step_s;
    result.throughput.cold_tokens_per_s = 0.75 * result.throughput.steady_tokens_per_s;
    result.step_ns = {{}, static_cast<int64_t>(1e9 * step_s), static_cast<int64_t>(1.0625e9 * step_s), 0.015625};
    // Two steps of warm-up, then steps around the median.
    for (const double share : {1.5, 1.0625, 1.0, 1.01, 0.99, 1.015, 0.985}) {
      result.step_ns.all_ns.push_back(static_cast<int64_t>(share * 1e9 * step_s));
    }
    result.memory.by_category = {
        {"parameters", 100'000'000}, {"gradients", 100'000'000},
        {"optimizer", 200'000'000},  {"activations", static_cast<int64_t>(160e6 * batch * kept)},
        {"workspace", 30'000'000},   {"logits", 5'000'000}};
    for (const auto& [category, bytes] : result.memory.by_category) result.memory.planned_peak_bytes += bytes;
    result.memory.rss_peak_bytes = result.memory.planned_peak_bytes + 192'000'000;
    result.environment.insert({{"cpu", "Example CPU"},
                               {"cores", "2"},
                               {"kernel", "Linux 6.1.0"},
                               {"git_commit", "0123abc"},
                               {"onednn", "2.7.3"},
                               {"hostname", "node-1"}});
  }
  results_.push_back(std::move(result));
  return results_.back();
}

void Runs::Put(const std::string& name, const std::string& campaign) {
  const MeasurementKey as = {campaign, DefaultSetup()};
  store_.PutSweep({name, "a sweep", "sweep.yaml", "name: sample\n", 1, as}, points_);
  std::vector<store::NewResult> results;
  for (const RunResult& result : results_) results.push_back({result, "", 0, as});
  store_.AddResults(results);
}

void FillSample(store::Store& store) {
  Runs runs(store);
  const auto spec = [](const char* policy, int batch, const char* precision = "bf16", const char* model = "llama-25m") {
    return Json{{"model", model}, {"precision", precision}, {"batch_size", batch}, {"checkpointing", policy}};
  };
  for (const char* policy : {"none", "selective", "full"}) runs.Add(spec(policy, 1));
  RunResult& skipped = runs.Add(spec("none", 16), RunStatus::kSkippedPredictedOom);
  skipped.message = "the plan does not fit in this machine's memory";
  skipped.provenance = Provenance::kPredicted;
  skipped.memory.planned_peak_bytes = 2'995'000'000;
  skipped.evidence = {{"wanted_bytes", "2995000000"}, {"available_bytes", "2000000000"}};
  runs.Add(spec("full", 8));
  runs.Add(spec("full", 16));

  runs.Add(spec("none", 1, "fp32"));
  RunResult& killed = runs.Add(spec("none", 8, "fp32"), RunStatus::kOomHost);
  killed.message = "the kernel ended it: out of memory";
  killed.evidence = {{"wanted_bytes", "1800000000"}, {"oom_kill", "1"}};
  runs.Add(spec("full", 8, "fp32"), RunStatus::kCrashed).message = "signal 11 (Segmentation fault)";
  runs.Add(spec("full", 16, "fp32"), RunStatus::kTimeout).message = "the limit of 300 s passed";

  RunResult& predicted = runs.Add(spec("none", 1, "bf16", "gpt-10m"));
  predicted.provenance = Provenance::kPredicted;
  predicted.memory.rss_peak_bytes = 0;
  predicted.step_ns.all_ns.clear();
  RunResult& published = runs.Add(spec("full", 1, "bf16", "gpt-10m"));
  published.provenance = Provenance::kPublished;
  published.emulated = true;
  published.step_ns.all_ns.clear();
  published.environment["hostname"] = "node-2";
  runs.Put("sample");
}

report::Report ShippedReport(const std::string& name) {
  return report::LoadReportFolder(std::filesystem::path(RIDGELINE_SOURCE_DIR) / "reports" / name);
}

void PutPrediction(store::Store& store, const Json& values, double tokens_per_s, int64_t peak_bytes,
                   const std::function<void(RunResult&)>& edit, const std::string& as) {
  std::vector<Problem> problems;
  const RunSpec spec = BuildSpec(values, problems);
  for (const Problem& problem : problems) ADD_FAILURE() << problem.field << ": " << problem.message;
  RunResult result;
  result.point_id = PointId(spec);
  result.status = RunStatus::kOk;
  result.provenance = Provenance::kPredicted;
  result.device = "p5";
  result.parameters = CountParameters(spec);
  result.throughput.steady_tokens_per_s = tokens_per_s;
  result.step_ns.median_ns = 200'000'000;
  result.memory.planned_peak_bytes = peak_bytes;
  edit(result);
  store.PutPredictions(std::vector<Point>{{result.point_id, spec}}, std::vector<RunResult>{result}, {"predicted", as});
}

std::vector<std::string> Texts(const report::Rows& rows, const std::string& column) {
  std::vector<std::string> texts;
  for (size_t row = 0; row < rows.size(); ++row) texts.emplace_back(rows.Text(row, column));
  return texts;
}

void ExpectGolden(const std::string& text, const std::string& name) {
  const std::filesystem::path file = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "tests/golden/report" / name;
  if (std::getenv("RIDGELINE_UPDATE_GOLDENS") != nullptr) {
    MakeDirs(file.parent_path());
    WriteFileAtomic(file, text);
  }
  EXPECT_TRUE(text == ReadFile(file)) << name << " differs from what is rendered; RIDGELINE_UPDATE_GOLDENS=1 "
                                      << "writes it anew, and the difference is to be read";
}

std::string WithoutIds(std::string text) {
  static const std::regex kId("\\b[0-9a-f]{32}\\b");
  std::map<std::string, std::string> names;
  std::string out;
  std::smatch match;
  for (std::string rest = std::move(text);; rest = match.suffix()) {
    if (!std::regex_search(rest, match, kId)) return out + rest;
    const auto [it, is_new] = names.emplace(match.str(), "point-" + std::to_string(names.size() + 1));
    out += match.prefix().str() + it->second;
  }
}

}  // namespace ridgeline::report_sample
