// Every report over 100,000 runs, including the query. Goals: at most 3 s in any format, and a page of 5 MB. Curves of
// 102 runs of 1,000 steps: at most 1 s.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "bench/many_runs.h"
#include "report/report.h"
#include "store/store.h"

namespace ridgeline {
namespace {

// The database is made once, and removed at the end of the process.
class Sample {
 public:
  explicit Sample(void (*fill)(store::Store&)) : store_(store::Store::Open(file_, store::Store::Mode::kReadWrite)) {
    fill(store_);
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;
  ~Sample() {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::error_code ignored;
      std::filesystem::remove(file_.string() + suffix, ignored);
    }
  }
  store::Store& store() { return store_; }

 private:
  std::filesystem::path file_ =
      std::filesystem::temp_directory_path() /
      ("ridgeline-report-bench-" + std::to_string(::getpid()) + "-" + std::to_string(++made_) + ".db");
  store::Store store_;
  static inline int made_ = 0;
};

store::Store& StoreOfRuns() {
  static Sample sample(FillRuns);
  return sample.store();
}

const std::filesystem::path kReports = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "reports";

// `runs` is the number of runs that it must have.
void Time(benchmark::State& state, store::Store& store, const std::string& name, report::ReportFormat format,
          const char* sweep, std::optional<int64_t> runs, double limit_s) {
  const report::Report report = report::LoadReportFolder(kReports / name);
  size_t bytes = 0;
  for (auto _ : state) {
    const report::RenderedReport rendered = report::Render(report, store, {sweep, format});
    if (runs && rendered.runs != *runs) state.SkipWithError("not every run is in the report");
    bytes = rendered.bytes.size();
  }
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["limit_s"] = limit_s;
}

void BM_Report(benchmark::State& state, report::ReportFormat format, const char* sweep) {
  Time(state, StoreOfRuns(), "activation-checkpointing", format, sweep, *sweep == '\0' ? kRuns + kCurves : kRuns, 3);
}
BENCHMARK_CAPTURE(BM_Report, html, report::ReportFormat::kHtml, "")->Unit(benchmark::kSecond)->MinTime(3);
BENCHMARK_CAPTURE(BM_Report, html_of_a_sweep, report::ReportFormat::kHtml, "bench")
    ->Unit(benchmark::kSecond)
    ->MinTime(3);
BENCHMARK_CAPTURE(BM_Report, markdown, report::ReportFormat::kMarkdown, "")->Unit(benchmark::kSecond)->MinTime(3);
BENCHMARK_CAPTURE(BM_Report, csv, report::ReportFormat::kCsv, "")->Unit(benchmark::kSecond)->MinTime(3);
BENCHMARK_CAPTURE(BM_Report, json, report::ReportFormat::kJson, "")->Unit(benchmark::kSecond)->MinTime(3);

void BM_Curves(benchmark::State& state, report::ReportFormat format) {
  Time(state, StoreOfRuns(), "convergence", format, "", kCurves, 1);
}
BENCHMARK_CAPTURE(BM_Curves, html, report::ReportFormat::kHtml)->Unit(benchmark::kSecond)->MinTime(1);
BENCHMARK_CAPTURE(BM_Curves, json, report::ReportFormat::kJson)->Unit(benchmark::kSecond)->MinTime(1);

store::Store& StoreOfNights() {
  static Sample nights(FillNights);
  return nights.store();
}

void BM_History(benchmark::State& state, report::ReportFormat format) {
  Time(state, StoreOfNights(), "history", format, "", kRuns, 3);
}
BENCHMARK_CAPTURE(BM_History, html, report::ReportFormat::kHtml)->Unit(benchmark::kSecond)->MinTime(3);
BENCHMARK_CAPTURE(BM_History, csv, report::ReportFormat::kCsv)->Unit(benchmark::kSecond)->MinTime(3);

// Each shipped report, as a page of all runs and of all nights.
const bool kEveryReport = [] {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kReports)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  for (const auto& [sample, store] : {std::pair("runs", &StoreOfRuns), std::pair("nights", &StoreOfNights)}) {
    for (const std::string& name : names) {
      benchmark::RegisterBenchmark(("BM_Every/" + name + "/" + sample).c_str(),
                                   [name, store](benchmark::State& state) {
                                     Time(state, store(), name, report::ReportFormat::kHtml, "", std::nullopt, 3);
                                   })
          ->Unit(benchmark::kSecond)
          ->Iterations(1);
    }
  }
  return true;
}();

}  // namespace
}  // namespace ridgeline
