// Collecting 100,000 results into the store. The aim is 3 s. On a shared core it took 8.5 s of processor time.
//
// The files are made once, in a folder under the system's temporary folder. The time covers reading, checking, storing
// and committing them into a new database that already has the points and the jobs.
#include <benchmark/benchmark.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "collect/collect.h"
#include "ridgeline/job_line.h"
#include "run/job.h"
#include "run/presets.h"
#include "run/result.h"
#include "run/spec.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPoints = 100'000;
constexpr size_t kPointsPerJob = 100;

std::vector<Point> MakePoints() {
  RunSpec spec = FamilyDefaults(ModelFamily::kLlama);
  ApplyPreset(*FindPreset("llama-25m"), spec);
  std::vector<Point> points;
  for (size_t i = 0; i < kPoints; ++i) {
    spec.seed = static_cast<int64_t>(i);
    Canonicalize(spec);
    points.push_back({PointId(spec), spec});
  }
  return points;
}

// The environment as a trainer on a server writes it: about 2 KB.
RunResult MakeResult(const std::string& id, size_t number) {
  RunResult result;
  result.point_id = id;
  result.status = RunStatus::kOk;
  result.evidence = {{"exit_code", "0"}};
  result.device = "a server processor with 64 cores";
  result.parameters = 25'000'000;
  result.tokens_per_step = 4096;
  const auto step = static_cast<int64_t>(500'000'000 + number);
  for (int i = 0; i < 17; ++i) {
    result.step_ns.all_ns.push_back(step + i * 1001);
    result.loss.push_back(10.5 - 0.0123 * i);
    result.grad_norm.push_back(1.25 + 0.0321 * i);
  }
  result.step_ns.median_ns = step;
  result.step_ns.p95_ns = step + 5;
  result.step_ns.cv = 0.0123;
  result.throughput = {8192.25 + static_cast<double>(number), 8000.5};
  result.memory.by_category = {{"parameters", 100'000'000}, {"gradients", 100'000'000}, {"optimizer", 200'000'000},
                               {"activations", 75'000'000}, {"workspace", 1'000'000},   {"logits", 16'000'000}};
  result.memory.planned_peak_bytes = 492'000'000;
  result.memory.rss_peak_bytes = 530'000'000;
  result.flops = {1.2e12, 1.3e12, 1.6e12};
  result.started_unix_ns = 1'700'000'000'000'000'000;
  result.ended_unix_ns = 1'700'000'010'000'000'000;
  result.environment = {
      {"command", "ridgeline-train --spec points/" + id + "/spec.json --result points/" + id + "/result.json"}};
  for (int i = 0; i < 28; ++i) {
    result.environment[fmt::format("what_it_is_{}", i)] = std::string(static_cast<size_t>(20 + 3 * i), 'v');
  }
  return result;
}

// The folder with the results, and a database that has their points and jobs.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "ridgeline-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) ThrowErrno("cannot make " + name);
    path_ = name;
    const std::vector<Point> points = MakePoints();
    store::Store store = store::Store::Open(path_ / "waiting.db", store::Store::Mode::kReadWrite);
    store.PutSweep({"bench", "", "", "", 1}, points);
    std::vector<store::JobRecord> jobs;
    for (size_t first = 0; first < kPoints; first += kPointsPerJob) {
      store::JobRecord& job = jobs.emplace_back();
      job.key = fmt::format("rl-{}", first);
      job.sweep = "bench";
      job.launcher = "local";
      job.job_dir = path_ / job.key;
      MakeDirs(job.job_dir);
      std::ofstream lines(ResultsFile(job.job_dir));
      for (size_t i = first; i < first + kPointsPerJob; ++i) {
        job.points.push_back({points[i].id});
        lines << FormatJobLine(
            {std::string(kResultLine), points[i].id, DumpJson(EncodeResult(MakeResult(points[i].id, i)))});
      }
    }
    store.RecordIntents(jobs);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void BM_Collect(benchmark::State& state) {
  const Folder folder;
  for (auto _ : state) {
    state.PauseTiming();
    const fs::path file = folder.path() / "ridgeline.db";
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(file.string() + end);
    fs::copy_file(folder.path() / "waiting.db", file);
    store::Store store = store::Store::Open(file, store::Store::Mode::kReadWrite);
    std::vector<collect::JobToCollect> jobs;
    for (store::JobRecord& job : store.LiveJobs("bench"))
      jobs.push_back({std::move(job), store::JobRecord::State::kEnded, {}});
    state.ResumeTiming();
    const size_t collected = collect::Collect(store, jobs, 1).size();
    state.PauseTiming();
    if (collected != kPoints) state.SkipWithError("not every result was collected");
    state.counters["db_bytes"] = static_cast<double>(fs::file_size(file) + fs::file_size(file.string() + "-wal"));
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kPoints));
}
BENCHMARK(BM_Collect)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime()->Iterations(3);

}  // namespace
}  // namespace ridgeline
