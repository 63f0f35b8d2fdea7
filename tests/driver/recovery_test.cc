// The driver is killed or interrupted, and run again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <type_traits>
#include <utility>

#include "tests/driver/world.h"

namespace ridgeline::driver {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// A launcher that may be killed with the driver, before or after each call.
class KillableLauncher final : public launch::Launcher {
 public:
  KillableLauncher(launch::Launcher& inner, const std::function<void()>& step) : inner_(inner), step_(step) {}
  const std::string& name() const override { return inner_.name(); }
  launch::LauncherCapabilities can() const override { return inner_.can(); }
  launch::LauncherStatus Probe() override { return inner_.Probe(); }
  launch::Rendered Render(std::span<const launch::LaunchJob> jobs) override { return inner_.Render(jobs); }
  std::vector<launch::Submission> Submit(std::span<const launch::LaunchJob> jobs) override {
    return Around([&] { return inner_.Submit(jobs); });
  }
  std::vector<launch::JobState> PollMany(std::span<const launch::JobRef> jobs) override {
    return Around([&] { return inner_.PollMany(jobs); });
  }
  std::vector<bool> Cancel(std::span<const launch::JobRef> jobs) override {
    return Around([&] { return inner_.Cancel(jobs); });
  }

 private:
  template <typename Call>
  std::invoke_result_t<Call> Around(Call call) {
    step_();
    auto answer = call();
    step_();
    return answer;
  }
  launch::Launcher& inner_;
  const std::function<void()>& step_;
};

// Runs once, and kills the run at its `kill_at`th chance. Returns whether it lived to its end.
bool RunUntilKilled(World& world, int kill_at) {
  int chances = 0;
  const std::function<void()> step = [&] {
    if (++chances == kill_at) throw Killed();
  };
  try {
    store::Store store = world.OpenStore();
    KillableClock clock(step);
    KillableLauncher launcher(world.launcher, step);
    RunSweep(sweep::ParseSweep(world.yaml, "test.yaml"), world.options,
             {store, launcher, clock,
              [&](const RunSpec&) {
                step();
                return predict::MemoryForecast{1000, {}};
              },
              world.observer, [] { return 0; }});
    return true;
  } catch (const Killed&) {
    return false;
  }
}

TEST(DriverRecovery, KilledAnywhereEveryPointStillEndsWithOneResult) {
  int survived_at = 0;
  for (int kill_at = 1; survived_at == 0; ++kill_at) {
    ASSERT_LT(kill_at, 2000) << "the run never ends";
    World world(3);
    world.options.max_parallel = 2;
    world.yaml += "launch: {bundle: 2}\n";
    world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
      entry.phase = launch::JobPhase::kRunning;
      if (entry.polls > 1) world.Finish(entry);
    };
    if (RunUntilKilled(world, kill_at)) survived_at = kill_at;
    const RunSummary summary = world.Run();
    ASSERT_EQ(summary.ok, 3) << "killed at chance " << kill_at;
    ASSERT_THAT(world.measured, Each(Pair(::testing::_, 1))) << "killed at chance " << kill_at;
    ASSERT_EQ(world.Count("SELECT count(*) FROM results"), 3) << "killed at chance " << kill_at;
    ASSERT_THAT(world.OpenStore().Check(), IsEmpty()) << "killed at chance " << kill_at;
    for (const auto& [key, job] : world.launcher.jobs) ASSERT_EQ(job.starts, 1) << "killed at chance " << kill_at;
  }
  EXPECT_GT(survived_at, 30) << "too few chances to be killed for this test to mean anything";
}

TEST(DriverRecovery, KilledAnywhereEveryRepeatIsMeasuredOnce) {
  int survived_at = 0;
  for (int kill_at = 1; survived_at == 0; ++kill_at) {
    ASSERT_LT(kill_at, 2000) << "the run never ends";
    World world(2);
    world.yaml += "measure: {repeats: 2}\n";
    if (RunUntilKilled(world, kill_at)) survived_at = kill_at;
    ASSERT_EQ(world.Run().ok, 2) << "killed at chance " << kill_at;
    ASSERT_THAT(world.measured, Each(Pair(::testing::_, 2))) << "killed at chance " << kill_at;
    ASSERT_EQ(world.Count("SELECT count(*) FROM results"), 4) << "killed at chance " << kill_at;
    ASSERT_EQ(world.Count("SELECT count(*) FROM runs WHERE repeat = 2"), 2) << "killed at chance " << kill_at;
    ASSERT_THAT(world.OpenStore().Check(), IsEmpty()) << "killed at chance " << kill_at;
  }
  EXPECT_GT(survived_at, 20) << "too few chances to be killed for this test to mean anything";
}

TEST(DriverRecovery, KilledAgainAndAgain) {
  World world(6);
  for (int kill_at = 1; !RunUntilKilled(world, kill_at); ++kill_at) ASSERT_LT(kill_at, 2000);
  EXPECT_EQ(world.Run().ok, 6);
  EXPECT_THAT(world.measured, SizeIs(6));
  EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
  EXPECT_EQ(world.Count("SELECT count(*) FROM results"), 6);
}

// Leaves a running job behind that has no driver.
void AbandonAJob(World& world) {
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { entry.phase = launch::JobPhase::kRunning; };
  world.step = [&] {
    if (world.launcher.poll_calls > 3) throw Killed();
  };
  EXPECT_THROW(world.Run(), Killed);
  world.step = nullptr;
  ASSERT_THAT(world.OpenStore().LiveJobs("test"), SizeIs(1));
}

TEST(DriverRecovery, AFirstInterruptCancelsAndCollectsAndTheNextRunContinues) {
  World world(3);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { entry.phase = launch::JobPhase::kRunning; };
  int calls = 0;
  world.interrupts = [&] { return calls++ > 5 ? 1 : 0; };
  const RunSummary stopped = world.Run();
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_EQ(stopped.live_jobs, 0);
  EXPECT_EQ(stopped.no_result, 3);
  EXPECT_THAT(world.launcher.cancelled, SizeIs(1));
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE status = 'cancelled'"), 1);

  world.interrupts = nullptr;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry); };
  const RunSummary finished = world.Run();
  EXPECT_EQ(finished.ok, 3);
  EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
}

// Planning thousands of points takes a while.
TEST(DriverRecovery, AnInterruptEndsThePlanningToo) {
  World world(3);
  int calls = 0;
  world.interrupts = [&] { return ++calls < 2 ? 0 : 1; };
  const RunSummary stopped = world.Run();
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_EQ(stopped.no_result, 3);
  EXPECT_LE(calls, 4) << "a further point was planned";
  EXPECT_EQ(world.launcher.submit_calls, 0);
  EXPECT_THAT(world.observer.notes, SizeIs(0));

  world.interrupts = nullptr;
  EXPECT_EQ(world.Run().ok, 3);
}

TEST(DriverRecovery, AnInterruptWhileItPlansCancelsTheJobsThatItAdopted) {
  World world(3);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { entry.phase = launch::JobPhase::kRunning; };
  world.interrupts = [&] { return world.launcher.jobs.empty() ? 0 : 2; };
  ASSERT_EQ(world.Run().live_jobs, 1);

  world.interrupts = [] { return 1; };
  const RunSummary stopped = world.Run();
  EXPECT_EQ(world.observer.start.points, 0) << "it did not begin";
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_EQ(stopped.live_jobs, 0);
  EXPECT_THAT(world.launcher.cancelled, SizeIs(1));
}

// When a login ends, systemd sends SIGTERM and at once SIGHUP. SIGTERM alone would cancel the jobs.
TEST(DriverRecovery, ALogoutLeavesTheJobsRunning) {
  World world(1);
  world.launcher.max_jobs = 10;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { entry.phase = launch::JobPhase::kRunning; };
  int calls = 0;
  world.interrupts = [&] { return ++calls < 5 ? 0 : calls == 5 ? 1 : 3; };
  EXPECT_TRUE(world.Run().left);
  EXPECT_THAT(world.launcher.cancelled, SizeIs(0));
}

// For example when a terminal is closed, or on a second Ctrl-C.
TEST(DriverRecovery, ADriverThatLeavesKeepsItsJobsAndTheNextRunFollowsThem) {
  World world(3);
  world.launcher.max_jobs = 10;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { entry.phase = launch::JobPhase::kRunning; };
  int calls = 0;
  world.interrupts = [&] { return calls++ > 5 ? 2 : 0; };
  const RunSummary left = world.Run();
  EXPECT_TRUE(left.interrupted);
  EXPECT_TRUE(left.left);
  EXPECT_EQ(left.live_jobs, 3);
  EXPECT_THAT(world.launcher.cancelled, SizeIs(0));
  EXPECT_EQ(world.Count("SELECT count(*) FROM results"), 0);

  world.interrupts = nullptr;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry); };
  EXPECT_EQ(world.Run().ok, 3);
  EXPECT_EQ(world.observer.start.adopted_jobs, 3);
  EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
}

TEST(DriverRecovery, DetachSubmitsEverythingAndFollowsNothing) {
  World world(3);
  world.launcher.max_jobs = 10;
  world.options.detach = true;
  const RunSummary left = world.Run();
  EXPECT_FALSE(left.interrupted);
  EXPECT_TRUE(left.left);
  EXPECT_EQ(left.live_jobs, 3);
  EXPECT_EQ(world.Count("SELECT count(*) FROM jobs WHERE state = 'submitted'"), 3);
  EXPECT_EQ(world.launcher.poll_calls, 0);
  world.options.detach = false;
  EXPECT_EQ(world.Run().ok, 3);
  EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
}

TEST(DriverRecovery, ALauncherWithoutAQueueIsNotLeft) {
  World world(1);
  world.options.detach = true;
  try {
    world.Run();
    FAIL() << "it was left";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
  }
}

// For example Ctrl-C while the controller is silent.
TEST(DriverRecovery, ALauncherThatDoesNotAnswerIsToldToCancelAgain) {
  World world(2);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { entry.phase = launch::JobPhase::kRunning; };
  bool stopping = false;
  int silences = 3;
  const std::function<void()> step = [&] {
    if (stopping && silences-- > 0) throw Error(ErrorKind::kInfrastructure, "no controller");
  };
  KillableLauncher launcher(world.launcher, step);
  int calls = 0;
  world.interrupts = [&] {
    stopping = calls++ > 5;
    return stopping ? 1 : 0;
  };
  const RunSummary stopped = world.RunOn(launcher);
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_EQ(stopped.live_jobs, 0);
  EXPECT_LT(silences, 0);
  EXPECT_THAT(world.launcher.cancelled, SizeIs(1));
}

// A permanent refusal is reported once for all its jobs.
TEST(DriverRecovery, ARefusalOfManyJobsIsSaidOnce) {
  World world(50);
  world.launcher.max_jobs = 100;
  world.launcher.on_submit = [](const launch::LaunchJob&) {
    throw Error(ErrorKind::kInvalidInput, "no such partition");
  };
  EXPECT_THROW(world.Run(), Error);
  EXPECT_THAT(world.observer.ended, SizeIs(0));
  EXPECT_THAT(world.observer.notes, ::testing::Contains("not submitted, 50 jobs: no such partition").Times(1));
  EXPECT_THAT(world.observer.notes, SizeIs(::testing::Le(2)));
}

TEST(DriverRecovery, KeepsRepeatsThatAPointMeasuredBeforeAnInterrupt) {
  World world(2);
  world.yaml += "launch: {bundle: 2}\n";
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    if (entry.polls == 1) world.WriteResult(entry.job.job_dir, World::PointsOf(entry.job)[0]);
    entry.phase = launch::JobPhase::kRunning;
  };
  int calls = 0;
  world.interrupts = [&] { return calls++ > 3 ? 1 : 0; };
  const RunSummary stopped = world.Run();
  EXPECT_EQ(stopped.ok, 1);
  EXPECT_EQ(stopped.no_result, 1);
}

TEST(DriverRecovery, ARunningJobIsAdopted) {
  World world(2);
  AbandonAJob(world);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry); };
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_EQ(world.observer.start.adopted_jobs, 1);
  EXPECT_THAT(world.launcher.jobs, SizeIs(2));
  EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
}

// A scheduler that is slow, or never acts.
class DeafLauncher final : public launch::Launcher {
 public:
  explicit DeafLauncher(launch::Launcher& inner) : inner_(inner) {}
  const std::string& name() const override { return inner_.name(); }
  launch::LauncherCapabilities can() const override { return inner_.can(); }
  launch::LauncherStatus Probe() override { return inner_.Probe(); }
  launch::Rendered Render(std::span<const launch::LaunchJob> jobs) override { return inner_.Render(jobs); }
  std::vector<launch::Submission> Submit(std::span<const launch::LaunchJob> jobs) override {
    return inner_.Submit(jobs);
  }
  std::vector<launch::JobState> PollMany(std::span<const launch::JobRef> jobs) override {
    return inner_.PollMany(jobs);
  }
  std::vector<bool> Cancel(std::span<const launch::JobRef> jobs) override {
    return std::vector<bool>(jobs.size(), true);
  }

 private:
  launch::Launcher& inner_;
};

TEST(DriverRecovery, ASecondInterruptLeavesTheJobsForTheNextRun) {
  World world(2);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { entry.phase = launch::JobPhase::kRunning; };
  DeafLauncher deaf(world.launcher);
  int calls = 0;
  {
    store::Store store = world.OpenStore();
    FakeClock clock;
    const RunSummary stopped = RunSweep(sweep::ParseSweep(world.yaml, "test.yaml"), world.options,
                                        {store, deaf, clock,
                                         [](const RunSpec&) {
                                           return predict::MemoryForecast{1, {}};
                                         },
                                         world.observer, [&] { return calls++ > 5 ? 2 : 0; }});
    EXPECT_TRUE(stopped.interrupted);
    EXPECT_EQ(stopped.live_jobs, 1);
  }
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry); };
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
}

TEST(DriverRecovery, ResultsOfAJobThatIsGoneAreCollectedFirst) {
  World world(2);
  ASSERT_FALSE(RunUntilKilled(world, 25));
  ASSERT_FALSE(world.launcher.jobs.empty());
  // The job ran to its end while no driver looked, and the scheduler has forgotten it.
  auto entry = world.launcher.jobs.begin()->second;
  if (world.measured.empty()) world.Finish(entry);
  world.launcher.jobs.clear();
  const RunSummary summary = world.Run();
  EXPECT_EQ(summary.ok, 2);
  EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
}

TEST(DriverRecovery, AnIntentWithoutItsFileIsSubmittedAllTheSame) {
  World world(2);
  world.RunKilledAtSubmit();
  std::filesystem::remove_all(world.dir / "jobs");
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_EQ(world.observer.start.adopted_jobs, 1);
  EXPECT_EQ(world.Count("SELECT count(*) FROM results"), 2);
}

// A driver that was killed in a submission leaves a job that may be reading its file when the next driver comes.
TEST(DriverRecovery, AJobFileIsReplacedNotWrittenOver) {
  World world(1);
  const std::filesystem::path begun = world.dir / "begun";
  std::filesystem::path file;
  world.launcher.on_submit = [&](const launch::LaunchJob& job) {
    file = job.job_file;
    std::filesystem::create_hard_link(file, begun);
    throw Killed();
  };
  EXPECT_THROW(world.Run(), Killed);
  bool replaced = false;
  world.launcher.on_submit = [&](const launch::LaunchJob&) { replaced = !std::filesystem::equivalent(file, begun); };
  EXPECT_EQ(world.Run().ok, 1);
  EXPECT_TRUE(replaced);
}

TEST(DriverRecovery, ADamagedJobFileOfAnIntentIsMadeAgain) {
  World world(1);
  world.launcher.on_submit = [](const launch::LaunchJob& job) {
    std::ofstream(job.job_file) << "{";
    throw Killed();
  };
  EXPECT_THROW(world.Run(), Killed);
  world.launcher.on_submit = [](const launch::LaunchJob&) {};
  EXPECT_EQ(world.Run().ok, 1);
}

TEST(DriverRecovery, AnIntentNobodyCanMakeAgainIsLostAndItsPointsPlanned) {
  World world(2);
  world.yaml += "launch: {bundle: 2}\n";
  world.RunKilledAtSubmit();
  std::filesystem::remove_all(world.dir / "jobs");
  // The intent holds a point that the edited sweep no longer has.
  world.yaml = "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [1]}\n";
  EXPECT_EQ(world.Run().ok, 1);
  EXPECT_EQ(world.Count("SELECT count(*) FROM jobs WHERE state = 'lost'"), 1);
}

TEST(DriverRecovery, AJobOnAnotherLauncherIsNotDoubled) {
  World world(1);
  world.RunKilledAtSubmit();
  UntouchedLauncher other("other", {true, "", ""});
  try {
    world.RunOn(other);
    FAIL() << "it went on";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("--launcher fake"));
  }
}

TEST(DriverRecovery, ALauncherThatDoesNotAnswerForAWhileLosesNothing) {
  World world(3);
  int calls = 0;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    if (++calls % 4 != 0) throw Error(ErrorKind::kInfrastructure, "no answer");
    world.Finish(entry);
  };
  EXPECT_EQ(world.Run().ok, 3);
  EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
}

TEST(DriverRecovery, ALauncherThatStaysSilentEndsTheRunAndItsJobsAreAdoptedLater) {
  World world(2);
  world.launcher.on_poll = [&](FakeLauncher::Entry&) { throw Error(ErrorKind::kInfrastructure, "no answer"); };
  EXPECT_THROW(world.Run(), Error);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry); };
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_EQ(world.observer.start.adopted_jobs, 1);
  EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
}

TEST(CancelJobs, EndsAndCollectsWhatADriverLeft) {
  World world(2);
  AbandonAJob(world);
  store::Store store = world.OpenStore();
  FakeClock clock;
  EXPECT_EQ(CancelJobs(store.LiveJobs("test"), store, world.launcher, clock, {}, {}, [] { return false; }).live, 0);
  EXPECT_THAT(store.LiveJobs("test"), IsEmpty());
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE status = 'cancelled'"), 1);
  EXPECT_EQ(world.Count("SELECT count(*) FROM jobs WHERE state = 'cancelled'"), 1);
}

TEST(CancelJobs, GivesUpOnAJobThatDoesNotEnd) {
  World world(1);
  AbandonAJob(world);
  store::Store store = world.OpenStore();
  FakeClock clock;
  DeafLauncher deaf(world.launcher);
  EXPECT_EQ(CancelJobs(store.LiveJobs("test"), store, deaf, clock, {}, {}, [] { return false; }).live, 1);
  EXPECT_THAT(store.LiveJobs("test"), SizeIs(1));
}

// As on NFS, whose clients show old content for up to a minute.
TEST(LateResults, AJobThatEndedWellIsGivenTimeForItsResults) {
  World world(2);
  world.launcher.max_jobs = 100;
  world.launcher.poll_pause_ns = 1'000'000'000;
  std::map<std::string, FakeLauncher::Entry> ended;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    entry.phase = launch::JobPhase::kEnded;
    entry.evidence = {{"exit_code", "0"}};
    ended[entry.job.key] = entry;
  };
  int looks = 0;
  world.step = [&] {
    if (++looks < 400) return;
    for (auto& job : std::exchange(ended, {})) world.Finish(job.second);
  };
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_GE(looks, 400);
  EXPECT_EQ(world.launcher.jobs.size(), 2) << "nothing ran twice";
  EXPECT_EQ(world.Count("SELECT count(*) FROM jobs WHERE state = 'ended'"), 2);
}

TEST(LateResults, APointWithoutItsResultIsLostAndRunsAgain) {
  World world(1);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    if (world.launcher.jobs.size() > 1) return world.Finish(entry);
    entry.phase = launch::JobPhase::kEnded;
    entry.evidence = {{"exit_code", "0"}};
  };
  EXPECT_EQ(world.Run().ok, 1);
  EXPECT_EQ(world.launcher.jobs.size(), 2);
}

// A file server that restarts makes handles stale for a moment. Here the folder becomes a link that cannot be followed.
class AwayForAMoment {
 public:
  void Take(const std::filesystem::path& folder) {
    const std::filesystem::path elsewhere = folder.string() + ".away";
    std::filesystem::rename(folder, elsewhere);
    std::filesystem::create_symlink(folder, folder);
    away_[folder] = elsewhere;
    looks_ = 0;
  }
  // Must be called often.
  void Step() {
    if (away_.empty() || ++looks_ < 100) return;
    for (const auto& [place, elsewhere] : std::exchange(away_, {})) {
      std::filesystem::remove(place);
      std::filesystem::rename(elsewhere, place);
    }
  }

 private:
  std::map<std::filesystem::path, std::filesystem::path> away_;
  int looks_ = 0;
};

TEST(LateResults, UnreadableResultsAreReadLater) {
  World world(2);
  world.launcher.max_jobs = 100;
  AwayForAMoment away;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    world.Finish(entry);
    away.Take(entry.job.job_dir);
  };
  world.step = [&] { away.Step(); };
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_THAT(world.observer.notes, ::testing::Contains(HasSubstr("results are read again later: ")));
  EXPECT_EQ(world.launcher.jobs.size(), 2);
}

TEST(LateResults, TheSameHoldsForEarlierRunsAndCancelledJobs) {
  World world(2);
  world.launcher.max_jobs = 100;
  AwayForAMoment away;
  world.step = [&] { away.Step(); };
  world.launcher.on_poll = [](FakeLauncher::Entry&) {};
  world.interrupts = [&] { return world.launcher.poll_calls > 0 ? 2 : 0; };
  EXPECT_TRUE(world.Run().left);
  for (auto& [key, entry] : world.launcher.jobs) away.Take(entry.job.job_dir);
  int asked = 0;
  world.interrupts = [&] { return ++asked < 60 ? 0 : 1; };  // after the folders are back
  world.launcher.on_cancel = [&] {
    for (auto& [key, entry] : world.launcher.jobs) away.Take(entry.job.job_dir);
  };
  const RunSummary summary = world.Run();
  EXPECT_TRUE(summary.interrupted);
  EXPECT_EQ(summary.live_jobs, 0);
  EXPECT_THAT(world.observer.notes, ::testing::Contains(HasSubstr("results are read again later: ")));
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE status = 'cancelled'"), 2);
}

}  // namespace
}  // namespace ridgeline::driver
