// A sweep, a store on disk, a launcher in this process and a clock that never waits: all that a driver needs. The store
// and the launcher outlive each driver, as in reality.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "driver/driver.h"
#include "run/result.h"
#include "run/results_file.h"
#include "sweep/job_description.h"
#include "tests/base/temp_dir.h"
#include "tests/fakes/fake_launcher.h"

namespace ridgeline::driver {

// Records all events.
class RecordingObserver final : public RunObserver {
 public:
  void Started(const RunStart& s) override { start = s; }
  void PointEnded(const std::string& label, const std::string& outcome, const RunProgress& progress) override {
    ended.push_back(label + ": " + outcome);
    last = progress;
  }
  void Note(const std::string& text) override { notes.push_back(text); }
  bool WantsProgress(int64_t) override { return wants_progress; }
  void Progress(const RunProgress& progress) override { progresses.push_back(progress); }

  RunStart start;
  RunProgress last;
  std::vector<std::string> ended;
  std::vector<std::string> notes;
  std::vector<RunProgress> progresses;
  bool wants_progress = false;
};

// Thrown where a test kills the driver. It is no Error, because nothing may catch it.
struct Killed {};

// Each time the clock is read, the driver may be killed.
class KillableClock final : public Clock {
 public:
  explicit KillableClock(const std::function<void()>& step) : step_(step) {}
  int64_t MonotonicNs() const override { return Step(), clock_.MonotonicNs(); }
  int64_t UnixNs() const override { return Step(), clock_.UnixNs(); }
  void SleepNs(int64_t duration_ns) override { Step(), clock_.SleepNs(duration_ns); }

 private:
  void Step() const {
    if (step_) step_();
  }
  const std::function<void()>& step_;
  FakeClock clock_;
};

// A launcher that a run must not use after asking whether it is available.
class UntouchedLauncher final : public launch::Launcher {
 public:
  UntouchedLauncher(std::string name, launch::LauncherStatus status)
      : name_(std::move(name)), status_(std::move(status)) {}
  const std::string& name() const override { return name_; }
  launch::LauncherCapabilities can() const override { return {}; }
  launch::LauncherStatus Probe() override { return status_; }
  launch::Rendered Render(std::span<const launch::LaunchJob>) override { return {}; }
  std::vector<launch::Submission> Submit(std::span<const launch::LaunchJob>) override {
    return ADD_FAILURE(), std::vector<launch::Submission>();
  }
  std::vector<launch::JobState> PollMany(std::span<const launch::JobRef>) override { return {}; }
  std::vector<bool> Cancel(std::span<const launch::JobRef>) override { return {}; }

 private:
  std::string name_;
  launch::LauncherStatus status_;
};

class World {
 public:
  explicit World(int points = 4) {
    std::string seeds;
    for (int i = 1; i <= points; ++i) seeds += (i > 1 ? ", " : "") + std::to_string(i);
    yaml = "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [" + seeds + "]}\n";
    options.program = "/bin/false";
    options.jobs_dir = dir / "jobs";
    options.trainer = {"/bin/false"};
    launcher.on_poll = [this](FakeLauncher::Entry& entry) { Finish(entry); };
  }

  // Writes a result for each of the job's points, and ends the job.
  void Finish(FakeLauncher::Entry& entry, RunStatus status = RunStatus::kOk) {
    for (const JobPoint& point : DecodeJob(ReadJsonFile(entry.job.job_file), entry.job.job_file.string()).points) {
      WriteResult(entry.job.job_dir, point.id, status, point.repeat);
    }
    entry.phase = launch::JobPhase::kEnded;
  }

  void WriteResult(const std::filesystem::path& job_dir, const std::string& id, RunStatus status = RunStatus::kOk,
                   int64_t repeat = 1) {
    RunResult result;
    result.repeat = repeat;
    result.point_id = id;
    result.status = status;
    if (status != RunStatus::kOk) result.message = "because";
    result.throughput.steady_tokens_per_s = 1234;
    result.environment = environment;
    MakeDirs(job_dir);
    ResultsWriter(job_dir).Append(result);
    ++measured[id];
  }

  static std::vector<std::string> PointsOf(const launch::LaunchJob& job) {
    std::vector<std::string> ids;
    for (const JobPoint& point : DecodeJob(ReadJsonFile(job.job_file), job.job_file.string()).points) {
      ids.push_back(point.id);
    }
    return ids;
  }

  store::Store OpenStore() { return store::Store::Open(dir / "test.db", store::Store::Mode::kReadWrite); }

  // One `ridgeline run`. Throws Killed if `step` does.
  RunSummary Run() { return RunOn(launcher); }
  RunSummary RunOn(launch::Launcher& on) {
    observer = RecordingObserver();
    observer.wants_progress = wants_progress;
    store::Store store = OpenStore();
    KillableClock clock(step);
    clock.SleepNs(later_ns);
    launcher.clock = &clock;
    sweep::Sweep sweep = sweep::ParseSweep(yaml, "test.yaml");
    if (describe) sweep.launch.describe = std::make_shared<const sweep::DescribeJob>(describe);
    return RunSweep(sweep, options,
                    {store, on, clock,
                     [this](const RunSpec& spec) {
                       return predict::MemoryForecast{forecast ? forecast(spec) : 1000, {}};
                     },
                     observer, [this] { return interrupts ? interrupts() : 0; }});
  }

  // A run that is killed when the launcher is asked to start a job. It leaves an intent and no job.
  void RunKilledAtSubmit() {
    launcher.on_submit = [](const launch::LaunchJob&) { throw Killed(); };
    EXPECT_THROW(Run(), Killed);
    launcher.on_submit = [](const launch::LaunchJob&) {};
  }

  Table Query(const std::string& sql) { return OpenStore().Query(sql); }
  int64_t Count(const std::string& sql) { return std::get<int64_t>(Query(sql).rows.at(0).at(0)); }

  TempDir dir;
  std::string yaml;
  DriverOptions options;
  FakeLauncher launcher;
  RecordingObserver observer;
  bool wants_progress = false;
  int64_t later_ns = 0;  // how much later the run's clock starts
  Facts environment;     // the environment in results
  std::function<int64_t(const RunSpec&)> forecast;
  sweep::DescribeJob describe;  // what the launcher says that jobs ask for
  std::function<int()> interrupts;
  std::function<void()> step;           // called often; throws Killed
  std::map<std::string, int> measured;  // point id -> number of times that a job measured it
};

inline void ExpectEveryPointMeasuredOnce(World& world, int points) {
  EXPECT_THAT(world.measured, ::testing::SizeIs(points));
  EXPECT_THAT(world.measured, ::testing::Each(::testing::Pair(::testing::_, 1)));
  EXPECT_EQ(world.Count("SELECT count(*) FROM results"), points);
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE status = 'ok'"), points);
  EXPECT_EQ(world.Count("SELECT count(*) FROM jobs WHERE state IN ('intent', 'submitted', 'running')"), 0);
  EXPECT_THAT(world.OpenStore().Check(), ::testing::IsEmpty());
}

}  // namespace ridgeline::driver
