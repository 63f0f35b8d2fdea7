// What a store's metrics say: from a store filled by hand, whose figures are known.
#include "metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "base/process.h"
#include "metrics/metrics_file.h"
#include "predict/memory_forecast.h"
#include "ridgeline/job_dir.h"
#include "run/gpu_peaks.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

bool HasProgram(const std::string& name) { return !FindProgram(name, std::getenv("PATH")).empty(); }

class MetricsTest : public ::testing::Test {
 protected:
  std::filesystem::path Db() const { return dir_ / "ridgeline.db"; }

  std::string Text(MetricsFormat format = MetricsFormat::kPrometheus) {
    return MetricsOf(store_, LookNow(store_, Db(), clock_), format);
  }

  // A job of these points, as the local launcher has it once it runs.
  void Start(const std::string& key, const std::vector<Point>& points) {
    store::JobRecord job = samples::Job(key, "test", points);
    job.job_dir = dir_ / key;
    job.measured_as = store_.Progress("test").sweep.measured_as;
    store_.RecordIntents({&job, 1});
    store_.MarkSubmitted(key, "native", 1'000'000'000);
    store_.MarkStarted(key, 8'000'000'000);
    store_.SetJobState(key, store::JobRecord::State::kRunning, {}, 0);
  }

  void ExpectPromtoolTakes(const std::string& text) {
    if (!HasProgram("promtool")) GTEST_SKIP() << "promtool is not installed; packages.txt has it (prometheus)";
    WriteFile(dir_ / "metrics", text);
    // It reads its standard input, which only a shell would redirect: so bash does, with a name that we chose.
    const Captured checked =
        ridgeline::Run({"bash", "-c", "promtool check metrics < \"$0\"", (dir_ / "metrics").string()});
    EXPECT_EQ(checked.status.exit_code, 0) << checked.stdout_text << checked.stderr_text << text;
    EXPECT_EQ(checked.stderr_text, "") << "what it advises against";
  }

  TempDir dir_;
  FakeClock clock_;
  store::Store store_ = store::Store::Open(Db(), store::Store::Mode::kReadWrite);
};

TEST_F(MetricsTest, SayHowPointsStandAndWhatTheyTook) {
  const std::vector<Point> points = samples::Points(5);
  store_.PutSweep(samples::Sweep("test"), points);
  samples::RunJob(store_, "job-1", "test", {points[0]}, RunStatus::kOk);
  samples::RunJob(store_, "job-2", "test", {points[1]}, RunStatus::kOomHost);
  samples::RunJob(store_, "job-3", "test", {points[2]}, RunStatus::kCrashed);
  samples::RunJob(store_, "job-4", "test", {points[3]}, InfrastructureReason::kNode);
  const std::string text = Text();
  for (const char* state : {"ok", "out_of_memory", "failed", "infrastructure", "waiting"}) {
    EXPECT_THAT(text, HasSubstr("ridgeline_points{sweep=\"test\",state=\"" + std::string(state) + "\"} 1\n"));
  }
  for (const char* state : {"running", "queued"}) {
    EXPECT_THAT(text, HasSubstr("ridgeline_points{sweep=\"test\",state=\"" + std::string(state) + "\"} 0\n"));
  }
  const std::string of = "{sweep=\"test\",point=\"" + points[0].id + "\"} ";
  EXPECT_THAT(text, HasSubstr("ridgeline_step_time_median_seconds" + of + "5.05e-07\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_step_time_p95_seconds" + of + "5.1e-07\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_throughput_tokens_per_second" + of + "1000.5\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_planned_peak_bytes" + of + "600\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_observed_peak_bytes" + of + "1000\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_oom_total{sweep=\"test\",kind=\"host\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_oom_total{sweep=\"test\",kind=\"device\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_results_total{sweep=\"test\",status=\"crashed\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_last_success_timestamp_seconds{sweep=\"test\"} 2e-07\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_run_info{sweep=\"test\",campaign=\"default\",launcher=\"local\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_point_info{sweep=\"test\",point=\"" + points[0].id +
                              "\",model=\"llama-10m\",precision=\"bf16\",batch_size=\"1\""));
  EXPECT_THAT(text, Not(HasSubstr("ridgeline_mfu_ratio"))) << "of a processor no peak is known";
  // 1 x 512 tokens in each of 7 steps.
  EXPECT_THAT(text, HasSubstr("ridgeline_tokens_total{sweep=\"test\"} 3584\n"));
  ExpectPromtoolTakes(text);
}

TEST_F(MetricsTest, LabelHowRanksShareAModelWhereTheyDo) {
  std::vector<Point> points = samples::Points(2);
  points[1].spec.ranks = 8;
  points[1].spec.tensor_parallel = 4;
  points[1].id = PointId(points[1].spec);
  store_.PutSweep(samples::Sweep("test"), points);
  samples::RunJob(store_, "job-1", "test", points, RunStatus::kOk);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("trainer=\"ridgeline\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("trainer=\"ridgeline\",tensor_parallel=\"4\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("pipeline_parallel")));
}

TEST_F(MetricsTest, SayWhatRunsAndHowLongItWaited) {
  const std::vector<Point> points = samples::Points(3);
  store_.PutSweep(samples::Sweep("test"), points);
  Start("job-1", {points[0], points[1]});
  const auto progress = ProgressFile(dir_ / "job-1", points[0].id);
  MakeDirs(progress.parent_path());
  WriteFile(progress, "4 17 1234.5 2.75\n");
  const std::string text = Text();
  const std::string of = "{sweep=\"test\",point=\"" + points[0].id + "\"} ";
  EXPECT_THAT(text, HasSubstr("ridgeline_running_step" + of + "4\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_running_steps" + of + "17\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_running_throughput_tokens_per_second" + of + "1234.5\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_running_loss" + of + "2.75\n"));
  for (const char* state : {"running", "queued", "waiting"}) {
    EXPECT_THAT(text, HasSubstr("ridgeline_points{sweep=\"test\",state=\"" + std::string(state) + "\"} 1\n"));
  }
  EXPECT_THAT(text, HasSubstr("ridgeline_jobs{sweep=\"test\",state=\"running\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_queue_wait_seconds_bucket{sweep=\"test\",le=\"5.0\"} 0\n"
                              "ridgeline_queue_wait_seconds_bucket{sweep=\"test\",le=\"15.0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_queue_wait_seconds_sum{sweep=\"test\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_driver_running 0\n"));
  ExpectPromtoolTakes(text);
}

TEST_F(MetricsTest, DescribeTheGpuIfThereIsOne) {
  RunSpec spec = FamilyDefaults(ModelFamily::kLlama);
  ApplyPreset(*FindPreset("llama-10m"), spec);
  spec.device = "cuda";
  spec.gpu = "h200";
  Canonicalize(spec);
  const Point point{PointId(spec), spec};
  store_.PutSweep(samples::Sweep("test"), {&point, 1});
  RunResult result = samples::Result(point.id);
  result.step_ns.median_ns = 10'000'000;
  result.flops.model_causal = 4.945e12;
  result.flops.model_non_causal = 9.89e12;
  result.memory.planned_peak_bytes = 1000;
  result.memory.device_peak_bytes = 1250;
  const store::NewResult added{result, "", 0, store_.Progress("test").sweep.measured_as};
  store_.AddResults({&added, 1});
  const std::string text = Text();
  const std::string of = "{sweep=\"test\",point=\"" + point.id + "\"} ";
  EXPECT_NEAR(*PeakFlops("h200", Precision::kBf16), 989e12, 1e6);
  EXPECT_NEAR(*PeakFlops("h200", Precision::kTf32), 494.5e12, 1e6);
  EXPECT_THAT(text, HasSubstr("ridgeline_mfu_ratio" + of + "0.5\n")) << text;
  EXPECT_THAT(text, HasSubstr("ridgeline_observed_peak_bytes" + of + "1250\n"));
  EXPECT_THAT(text, HasSubstr("ridgeline_prediction_error_ratio" + of + "0.25\n"));
  ExpectPromtoolTakes(text);
}

TEST_F(MetricsTest, AHostileStoreStillGivesValidMetrics) {
  const std::vector<Point> points = samples::Points(1);
  store::SweepRecord sweep = samples::Sweep("a\"} 1\nridgeline_build_info{x=\"\\ \xff");
  store_.PutSweep(sweep, points);
  const std::string text = Text();
  EXPECT_THAT(text, Not(HasSubstr("\nridgeline_build_info{x=")));
  ExpectPromtoolTakes(text);
}

TEST_F(MetricsTest, AreBoundedHoweverManyPointsThereAre) {
  const std::vector<Point> points = samples::Points(kMostMetricPoints + 100);
  store_.PutSweep(samples::Sweep("test"), points);
  std::vector<store::NewResult> results;
  const MeasurementKey as = store_.Progress("test").sweep.measured_as;
  for (const Point& point : points) results.push_back({samples::Result(point.id), "", 0, as});
  store_.AddResults(results);
  const std::string text = Text();
  size_t count = 0;
  for (size_t at = text.find("\nridgeline_step_time_median_seconds{"); at != std::string::npos;
       at = text.find("\nridgeline_step_time_median_seconds{", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, static_cast<size_t>(kMostMetricPoints));
  EXPECT_THAT(text, HasSubstr("point=\"" + points.back().id)) << "the newest";
}

TEST_F(MetricsTest, AnEmptyStoreGivesOnlyTheBuild) {
  EXPECT_THAT(MetricsOfNothing(MetricsFormat::kPrometheus), HasSubstr("\nridgeline_build_info{version=\""));
  ExpectPromtoolTakes(MetricsOfNothing(MetricsFormat::kPrometheus));
}

// Keeps what it is told.
class Told final : public driver::RunObserver {
 public:
  void Started(const driver::RunStart& /*start*/) override { said += "started;"; }
  void PointEnded(const std::string& label, const std::string& /*o*/, const driver::RunProgress& /*p*/) override {
    said += label + ";";
  }
  void Note(const std::string& text) override { said += text + ";"; }
  bool WantsProgress(int64_t /*ns*/) override { return wants; }
  void Progress(const driver::RunProgress& /*progress*/) override { said += "progress;"; }
  std::string said;
  bool wants = false;
};

TEST_F(MetricsTest, AFileIsKeptUpToDateAndWholeAndTheObserverToldAll) {
  const auto file = dir_ / "ridgeline.prom";
  const std::vector<Point> points = samples::Points(1);
  Told told;
  {
    MetricsFile metrics(file, Db(), store_, clock_, told);
    EXPECT_THAT(ReadFile(file), HasSubstr("ridgeline_build_info"));
    store_.PutSweep(samples::Sweep("test"), points);
    metrics.Started({});
    metrics.PointEnded("a point", "ok", {});
    EXPECT_FALSE(metrics.WantsProgress(clock_.MonotonicNs())) << "it was written a moment ago";
    clock_.SleepNs(6'000'000'000);
    EXPECT_TRUE(metrics.WantsProgress(clock_.MonotonicNs()));
    metrics.Progress({});
    EXPECT_THAT(ReadFile(file), HasSubstr("ridgeline_points{sweep=\"test\""));
    told.wants = true;
    EXPECT_TRUE(metrics.WantsProgress(clock_.MonotonicNs()));
    metrics.Progress({});
    EXPECT_EQ(told.said, "started;a point;progress;");
  }
  EXPECT_THAT(ReadFile(file), HasSubstr("ridgeline_driver_running 0\n"));
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".ridgeline.prom")) << entry.path() << " was left";
  }
}

TEST_F(MetricsTest, AFileThatCannotBeWrittenIsSaidOnceAndTheRunGoesOn) {
  MakeDirs(dir_ / "folder");
  Told told;
  MetricsFile metrics(dir_ / "folder/ridgeline.prom", Db(), store_, clock_, told);
  std::filesystem::remove_all(dir_ / "folder");
  for (int i = 0; i < 3; ++i) {
    clock_.SleepNs(6'000'000'000);
    EXPECT_TRUE(metrics.WantsProgress(clock_.MonotonicNs()));
    metrics.Progress({});
  }
  EXPECT_THAT(told.said, ::testing::MatchesRegex("the metrics could not be written: [^;]*; the run goes on;"));
}

}  // namespace
}  // namespace ridgeline::metrics
