#include "driver/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/driver/world.h"

namespace ridgeline::driver {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(Driver, RunsEveryPointOnceAndSaysHowEachEnded) {
  World world(4);
  const RunSummary summary = world.Run();
  EXPECT_EQ(summary.ok, 4);
  EXPECT_EQ(summary.failed, 0);
  EXPECT_EQ(summary.no_result, 0);
  EXPECT_FALSE(summary.interrupted);
  ExpectEveryPointMeasuredOnce(world, 4);
  EXPECT_EQ(world.observer.start.points, 4);
  EXPECT_EQ(world.observer.last.done, 4);
  EXPECT_EQ(world.observer.last.total, 4);
  EXPECT_THAT(world.observer.ended, Contains("seed=3: ok  1.23K tokens/s"));
}

TEST(Driver, SkipsFinishedPointsAndSaysSo) {
  World world(3);
  world.Run();
  const size_t jobs = world.launcher.jobs.size();
  const RunSummary again = world.Run();
  EXPECT_EQ(again.ok, 3);
  EXPECT_EQ(world.observer.start.finished, 3);
  EXPECT_EQ(world.launcher.jobs.size(), jobs);
  ExpectEveryPointMeasuredOnce(world, 3);
}

TEST(Driver, RunsOnlyWhatAnEditedSweepAdds) {
  World world(2);
  world.Run();
  world.yaml = "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [1, 2, 3]}\n";
  const RunSummary summary = world.Run();
  EXPECT_EQ(world.observer.start.finished, 2);
  EXPECT_EQ(world.observer.last.total, 3) << "all points of the sweep, as the summary has it";
  EXPECT_EQ(world.observer.last.done, summary.ok);
  ExpectEveryPointMeasuredOnce(world, 3);
}

TEST(Driver, ItsCountersAgreeWithItsSummary) {
  World world(4);
  world.yaml = "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {batch_size: [1, 2, 4, 8]}\n";
  world.forecast = [](const RunSpec& spec) { return spec.batch_size == 8 ? int64_t{1} << 60 : 1000; };
  world.options.node = {int64_t{1} << 40, "a test"};
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    world.Finish(entry, world.launcher.jobs.size() == 1 ? RunStatus::kCrashed : RunStatus::kOk);
  };
  const RunSummary first = world.Run();
  EXPECT_EQ(first.ok, 2);
  EXPECT_EQ(first.failed, 2);
  EXPECT_EQ(world.observer.last.done, first.ok);
  EXPECT_EQ(world.observer.last.failed, first.failed) << "one of them was predicted";
  EXPECT_EQ(world.observer.last.total, 4);
  world.options.retry_failed = true;
  const RunSummary again = world.Run();
  EXPECT_EQ(world.observer.start.finished, 2);
  EXPECT_EQ(world.observer.start.retried, 2);
  EXPECT_EQ(world.observer.last.done, again.ok);
  EXPECT_EQ(world.observer.last.failed, again.failed);
  EXPECT_EQ(world.observer.last.total, 4);
}

TEST(Driver, ThePointOfTwoSweepsIsPaidForOnce) {
  World world(2);
  world.Run();
  world.yaml = "name: other\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [2, 3]}\n";
  const RunSummary summary = world.Run();
  EXPECT_EQ(summary.ok, 2);
  EXPECT_EQ(world.observer.start.finished, 1);
  ExpectEveryPointMeasuredOnce(world, 3);
}

TEST(Driver, CommitsTheIntentAndTheFileBeforeItSubmits) {
  World world(1);
  world.launcher.on_submit = [&](const launch::LaunchJob& job) {
    const Table row = world.Query("SELECT key, state FROM jobs");
    ASSERT_THAT(row.rows, SizeIs(1));
    EXPECT_EQ(CellText(row.rows[0][0]), job.key);
    EXPECT_EQ(CellText(row.rows[0][1]), "intent");
    EXPECT_THAT(World::PointsOf(job), SizeIs(1));
  };
  world.Run();
  EXPECT_EQ(world.launcher.jobs.size(), 1);
}

TEST(Driver, APointPredictedNotToFitBecomesARow) {
  World world;
  world.yaml = "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {batch_size: [1, 2, 4]}\n";
  world.options.node = {5000 + predict::kProcessBaseBytes, "free here"};
  world.forecast = [](const RunSpec& spec) { return spec.batch_size == 4 ? 6000 : 1000; };
  const RunSummary summary = world.Run();
  EXPECT_EQ(summary.ok, 2);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(summary.no_result, 0);
  EXPECT_EQ(world.observer.start.predicted_oom, 1);
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE status = 'skipped_predicted_oom'"), 1);
  EXPECT_EQ(world.measured.size(), 2);
}

TEST(Driver, APointPredictedNotToFitRunsWhereThatIsAskedFor) {
  World world;
  world.yaml = "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {batch_size: [1, 2, 4]}\n";
  world.options.node = {5000 + predict::kProcessBaseBytes, "free here"};
  world.forecast = [](const RunSpec& spec) { return spec.batch_size == 4 ? 6000 : 1000; };
  EXPECT_EQ(world.Run().ok, 2);
  world.options.include_oom = true;
  EXPECT_EQ(world.Run().ok, 3);
  EXPECT_EQ(world.measured.size(), 3);
}

TEST(Driver, APointPredictedNotToFitIsJudgedAnewAtEachRun) {
  World world;
  world.yaml = "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {batch_size: [1, 4]}\n";
  world.options.node = {5000 + predict::kProcessBaseBytes, "free here"};
  world.forecast = [](const RunSpec& spec) { return spec.batch_size == 4 ? 6000 : 1000; };
  const std::string skipped = "SELECT count(*) FROM results WHERE status = 'skipped_predicted_oom'";
  world.Run();
  world.options.node = {5500 + predict::kProcessBaseBytes, "free here"};
  RunSummary summary = world.Run();
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(world.observer.start.finished, 1) << "nobody measured the other";
  EXPECT_EQ(world.observer.start.predicted_oom, 1);
  EXPECT_EQ(world.Count(skipped), 1) << "as before";
  world.options.node = {5500 + predict::kProcessBaseBytes, "memory_limit 5 kB"};
  EXPECT_EQ(world.Run().failed, 1);
  EXPECT_EQ(world.Count(skipped), 2) << "for another reason";
  world.options.node = {9000 + predict::kProcessBaseBytes, "free here"};
  summary = world.Run();
  EXPECT_EQ(summary.ok, 2);
  EXPECT_EQ(summary.failed, 0);
  EXPECT_EQ(world.observer.start.predicted_oom, 0);
  world.options.node = {5000 + predict::kProcessBaseBytes, "free here"};
  EXPECT_EQ(world.Run().ok, 2) << "what was measured stays so";
}

TEST(Driver, FailedPointsAreResultsUntilARetryIsAskedFor) {
  World world(2);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry, RunStatus::kCrashed); };
  EXPECT_EQ(world.Run().failed, 2);
  EXPECT_EQ(world.observer.last.failed, 2);
  EXPECT_THAT(world.observer.ended, Contains("seed=1: crashed  because"));

  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry); };
  EXPECT_EQ(world.Run().failed, 2);
  world.options.retry_failed = true;
  const RunSummary retried = world.Run();
  EXPECT_EQ(retried.ok, 2);
  EXPECT_EQ(retried.failed, 0);
  EXPECT_EQ(world.observer.start.retried, 2);
}

TEST(Driver, KeepsToItsWindowOfJobs) {
  World world(6);
  world.options.max_parallel = 2;
  size_t most = 0;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    size_t live = 0;
    for (const auto& [key, job] : world.launcher.jobs) live += job.phase != launch::JobPhase::kEnded ? 1 : 0;
    most = std::max(most, live);
    if (entry.polls == 3) world.Finish(entry);
  };
  world.Run();
  EXPECT_EQ(most, 2);
  ExpectEveryPointMeasuredOnce(world, 6);
}

TEST(Driver, ALauncherThatQueuesGetsAllItTakesAtOnce) {
  World world(30);
  world.launcher.max_jobs = 20;
  std::vector<size_t> submitted;  // number of new jobs at each call
  size_t before = 0;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    if (world.launcher.jobs.size() > before) submitted.push_back(world.launcher.jobs.size() - before);
    before = world.launcher.jobs.size();
    world.Finish(entry);
  };
  EXPECT_EQ(world.Run().ok, 30);
  EXPECT_THAT(submitted, ElementsAre(20, 10));
  EXPECT_EQ(world.launcher.jobs.size(), 30) << "each point is its own job";
  ExpectEveryPointMeasuredOnce(world, 30);
}

TEST(Driver, ALargeWindowIsFilledInLargeParts) {
  World world(60);
  world.launcher.max_jobs = 40;
  int poll = 0;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    if (++poll % 7 == 0) world.Finish(entry);
  };
  EXPECT_EQ(world.Run().ok, 60);
  EXPECT_LE(world.launcher.submit_calls, 8);
}

TEST(Driver, LeavesALauncherAloneAsLongAsItWishes) {
  World world(1);
  world.launcher.poll_pause_ns = 20'000'000'000;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    entry.phase = launch::JobPhase::kRunning;
    if (entry.polls == 10) world.Finish(entry);
  };
  EXPECT_EQ(world.Run().ok, 1);
  EXPECT_EQ(world.launcher.poll_calls, 10);
  EXPECT_GE(world.Count("SELECT ended_unix_ns - submitted_unix_ns FROM jobs"), 9 * 20'000'000'000);
}

TEST(Driver, AJobThatIsNotTakenNowIsSubmittedAgainForAsLongAsItTakes) {
  World world(2);
  world.launcher.not_now = true;
  int refusals = 0;
  world.launcher.on_submit = [&](const launch::LaunchJob&) {
    if (++refusals <= 20) throw Error(ErrorKind::kInfrastructure, "the table is full");
  };
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_THAT(world.observer.notes, ElementsAre(HasSubstr("the table is full"))) << "said once";
  ExpectEveryPointMeasuredOnce(world, 2);
}

TEST(Driver, ForHowLongALauncherMayBeSilentTheSweepSays) {
  for (const auto& [timeout, answers] : {std::pair{"5m", false}, {"2h", true}}) {
    World world(1);
    world.yaml += std::string("launch: {launcher_timeout: ") + timeout + "}\n";
    world.launcher.poll_pause_ns = 60'000'000'000;
    int64_t silent = 0;
    world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
      if (++silent < 100) throw Error(ErrorKind::kInfrastructure, "no answer");  // at least half an hour
      world.Finish(entry);
    };
    if (answers) {
      EXPECT_EQ(world.Run().ok, 1);
    } else {
      EXPECT_THROW(world.Run(), Error);
    }
  }
}

TEST(Driver, ALauncherThatTakesNothingForTooLongEndsTheRunAndLosesNothing) {
  World world(2);
  world.launcher.not_now = true;
  world.launcher.on_submit = [&](const launch::LaunchJob&) {
    throw Error(ErrorKind::kInfrastructure, "the table is full");
  };
  EXPECT_THROW(world.Run(), Error);
  world.launcher.on_submit = [&](const launch::LaunchJob&) {};
  EXPECT_EQ(world.Run().ok, 2);
  ExpectEveryPointMeasuredOnce(world, 2);
}

TEST(Driver, ASweepSaysHowOftenAPointIsRunAgain) {
  World world(1);
  world.yaml += "launch: {retry: {preempted: 3, node: 0}}\n";
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    entry.phase = launch::JobPhase::kEnded;
    entry.evidence = {{"end", "infrastructure"}, {"reason", "preempted"}};
  };
  EXPECT_EQ(world.Run().no_result, 1);
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE reason = 'preempted'"), 4);

  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    entry.phase = launch::JobPhase::kEnded;
    entry.evidence = {{"end", "infrastructure"}, {"reason", "node"}};
  };
  EXPECT_EQ(world.Run().no_result, 1);
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE reason = 'node'"), 1);
}

TEST(Driver, BundlesByTimeGoByWhatThisLauncherTookBefore) {
  World world(1);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    const std::string id = World::PointsOf(entry.job).front();
    RunResult result;
    result.point_id = id;
    result.status = RunStatus::kOk;
    result.started_unix_ns = 1;
    result.ended_unix_ns = 60'000'000'001;
    ResultsWriter(entry.job.job_dir).Append(result);
    entry.phase = launch::JobPhase::kEnded;
  };
  world.Run();
  world.yaml =
      "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [1, 2, 3, 4, 5]}\n"
      "launch: {bundle: 2m}\n";
  world.launcher.max_jobs = 10;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry); };
  EXPECT_EQ(world.Run().ok, 5);
  EXPECT_EQ(world.launcher.jobs.size(), 1 + 2) << "two minutes hold two points of a minute";
}

// Each job has four points, and a time limit that lets one of them run, so each job brings one result.
TEST(Driver, PointsThatNeverHadTheirTurnAreRunAgainWithoutLimit) {
  World world(4);
  world.yaml += "launch: {bundle: 4}\n";
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    const std::string first = World::PointsOf(entry.job).front();
    MakeDirs(PointDir(entry.job.job_dir, first));
    world.WriteResult(entry.job.job_dir, first);
    entry.phase = launch::JobPhase::kEnded;
    entry.evidence["end"] = "timeout";
  };
  EXPECT_EQ(world.Run().ok, 4);
  EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
}

TEST(Driver, SaysOnceWhatJobsWaitFor) {
  World world(3);
  world.launcher.max_jobs = 10;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    entry.evidence = {{"waits", "held by its owner"}, {"hint", "release it"}};
    if (entry.polls == 4) world.Finish(entry);
  };
  EXPECT_EQ(world.Run().ok, 3);
  EXPECT_THAT(world.observer.notes,
              ElementsAre("jobs go to a launcher in this process", "waits: held by its owner; release it"));
}

TEST(Driver, WaitingInTheQueueIsKeptApartFromRunning) {
  World world(1);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    entry.started_unix_ns = 4711;
    world.Finish(entry);
  };
  world.Run();
  EXPECT_EQ(world.Count("SELECT started_unix_ns FROM jobs"), 4711);
}

TEST(Driver, WaitsForJobsThatQueueStallAndAreRequeued) {
  World world(2);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    static constexpr launch::JobPhase kScript[] = {
        launch::JobPhase::kQueued,  launch::JobPhase::kRunning, launch::JobPhase::kRunning, launch::JobPhase::kQueued,
        launch::JobPhase::kMissing, launch::JobPhase::kQueued,  launch::JobPhase::kRunning, launch::JobPhase::kRunning};
    if (entry.polls > 50) return world.Finish(entry);
    entry.phase = kScript[static_cast<size_t>(entry.polls) % std::size(kScript)];
  };
  EXPECT_EQ(world.Run().ok, 2);
  ExpectEveryPointMeasuredOnce(world, 2);
}

TEST(Driver, AVanishedJobIsLostAndItsPointRunOnceMore) {
  World world(1);
  int jobs = 0;
  world.launcher.on_submit = [&](const launch::LaunchJob&) { ++jobs; };
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    if (jobs == 1) {
      entry.phase = launch::JobPhase::kMissing;
    } else {
      world.Finish(entry);
    }
  };
  EXPECT_EQ(world.Run().ok, 1);
  EXPECT_EQ(jobs, 2);
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE reason = 'lost'"), 1);
  EXPECT_THAT(world.observer.notes, Contains(HasSubstr("it is run again")));
  EXPECT_EQ(world.observer.last.total, 1);
}

TEST(Driver, APointThatIsLostAgainAndAgainIsLeftForTheNextRun) {
  World world(1);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { entry.phase = launch::JobPhase::kMissing; };
  const RunSummary summary = world.Run();
  EXPECT_EQ(summary.no_result, 1);
  EXPECT_EQ(world.launcher.jobs.size(), 2);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry); };
  EXPECT_EQ(world.Run().ok, 1);
}

TEST(Driver, AResultOfAVanishedJobCounts) {
  World world(1);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    if (world.measured.empty()) world.Finish(entry);
    entry.phase = launch::JobPhase::kMissing;
  };
  EXPECT_EQ(world.Run().ok, 1);
  ExpectEveryPointMeasuredOnce(world, 1);
}

TEST(Driver, AResultThatIsNoneIsKeptAsEvidenceAndItsPointRunAgain) {
  World world(1);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    std::ofstream(ResultsFile(entry.job.job_dir))
        << FormatJobLine({std::string(kResultLine), World::PointsOf(entry.job)[0], "{\"version\": 1}"});
    entry.phase = launch::JobPhase::kEnded;
  };
  EXPECT_EQ(world.Run().infrastructure, 1);
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE reason = 'storage' AND evidence LIKE '%result_file%'"), 2);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry); };
  EXPECT_EQ(world.Run().ok, 1);
}

TEST(Driver, ASubmitThatFailsForAWhileIsTriedAgain) {
  World world(2);
  int refusals = 0;
  world.launcher.on_submit = [&](const launch::LaunchJob&) {
    if (refusals++ < 2) throw Error(ErrorKind::kInfrastructure, "the controller is busy");
  };
  EXPECT_EQ(world.Run().ok, 2);
  ExpectEveryPointMeasuredOnce(world, 2);
}

TEST(Driver, ALauncherThatTakesNothingEndsTheRun) {
  World world(20);
  world.launcher.on_submit = [](const launch::LaunchJob&) { throw Error(ErrorKind::kInfrastructure, "down", "wait"); };
  try {
    world.Run();
    FAIL() << "it went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
    EXPECT_THAT(e.message(), HasSubstr("down"));
  }
  EXPECT_LT(world.Count("SELECT count(*) FROM jobs"), 6) << "it burnt through the sweep";
  world.launcher.on_submit = [](const launch::LaunchJob&) {};
  EXPECT_EQ(world.Run().ok, 20);
}

TEST(Driver, AWrongConfigurationIsNotTriedAgain) {
  World world(2);
  world.launcher.on_submit = [](const launch::LaunchJob&) {
    throw Error(ErrorKind::kInvalidInput, "no partition 'gpu'");
  };
  try {
    world.Run();
    FAIL() << "it went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure) << "its points have no result";
  }
  EXPECT_EQ(world.launcher.submit_calls, 1);
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE status = 'infrastructure'"), 1);
}

TEST(Driver, AJobOfOneSweepRefusedAmongMany) {
  World world(3);
  world.options.max_parallel = 3;
  std::string refused;
  world.launcher.on_submit = [&](const launch::LaunchJob& job) {
    if (refused.empty()) refused = job.key;
    if (job.key == refused) throw Error(ErrorKind::kInfrastructure, "this one not");
  };
  EXPECT_EQ(world.Run().ok, 3);
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE reason = 'start'"), 1);
}

TEST(Driver, ProgressIsOfTheCurrentPoint) {
  World world(2);
  world.wants_progress = true;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    const std::string id = World::PointsOf(entry.job)[0];
    if (entry.polls > 30) return world.Finish(entry);
    entry.phase = launch::JobPhase::kRunning;
    MakeDirs(PointDir(entry.job.job_dir, id));
    std::ofstream(ProgressFile(entry.job.job_dir, id)) << entry.polls << " 30 512.5\n";
  };
  world.Run();
  bool seen = false;
  bool estimated = false;
  for (const RunProgress& progress : world.observer.progresses) {
    estimated = estimated || progress.left_ns > 0;
    for (const LivePoint& point : progress.live) {
      seen = seen || (point.progress && point.progress->step == 7 && point.progress->steps == 30);
    }
  }
  EXPECT_TRUE(seen);
  EXPECT_TRUE(estimated) << "the second point's time is estimated from the first's";
}

TEST(Driver, ShortPointsShareJobsLongOnesDoNot) {
  World short_points(40);
  short_points.Run();
  EXPECT_LT(short_points.launcher.jobs.size(), 10);
  ExpectEveryPointMeasuredOnce(short_points, 40);

  World long_points(10);
  long_points.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    entry.phase = launch::JobPhase::kRunning;
    if (entry.polls > 200) long_points.Finish(entry);
  };
  long_points.Run();
  EXPECT_EQ(long_points.launcher.jobs.size(), 10);
}

TEST(Driver, ResultsOfARunningBundleAreCollectedAsTheyCome) {
  World world(3);
  world.yaml += "launch: {bundle: 3}\n";
  int64_t early = 0;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    const auto ids = World::PointsOf(entry.job);
    entry.phase = launch::JobPhase::kRunning;
    if (entry.polls == 1) world.WriteResult(entry.job.job_dir, ids[0]);
    if (entry.polls == 199) early = static_cast<int64_t>(world.observer.ended.size());
    if (entry.polls < 200) return;
    world.WriteResult(entry.job.job_dir, ids[1]);
    world.WriteResult(entry.job.job_dir, ids[2]);
    entry.phase = launch::JobPhase::kEnded;
  };
  world.Run();
  EXPECT_EQ(early, 1);
  ExpectEveryPointMeasuredOnce(world, 3);
}

TEST(Driver, AnotherStoreHasOtherJobs) {
  World world(1);
  world.Run();
  const std::string first = world.launcher.jobs.begin()->first;
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::filesystem::remove(world.dir.path() / (std::string("test.db") + suffix));
  }
  world.later_ns = 1;
  EXPECT_EQ(world.Run().ok, 1);
  EXPECT_EQ(world.observer.start.finished, 0);
  EXPECT_THAT(world.launcher.jobs, SizeIs(2)) << "a fresh store must measure anew, not find " << first;
}

TEST(Driver, ALauncherThatIsNotThereIsToldBeforeAnyJob) {
  World world(1);
  UntouchedLauncher launcher("slurm", {false, "sbatch is not installed", ""});
  EXPECT_THROW(world.RunOn(launcher), Error);
  EXPECT_EQ(world.Count("SELECT count(*) FROM jobs"), 0);
}

TEST(Driver, ALauncherThatHasTooMuchToDoAsTheRunBeginsIsAskedAgain) {
  World world(1);
  world.launcher.probes_refused = 3;
  EXPECT_EQ(world.Run().ok, 1);
  EXPECT_THAT(world.observer.notes, Contains(HasSubstr("asking again: the launcher fake does not answer")));
  world.launcher.probes_refused = 1'000'000;
  world.options.campaign = "another";
  EXPECT_THROW(world.Run(), Error);
}

}  // namespace
}  // namespace ridgeline::driver
