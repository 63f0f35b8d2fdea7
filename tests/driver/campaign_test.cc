// Points are measured once for each campaign and setup, whatever is killed meanwhile, and never without being asked
// for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/driver/world.h"

namespace ridgeline::driver {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(DriverCampaign, AnotherMeasuresWhatIsThereOnceMore) {
  World world(3);
  EXPECT_EQ(world.Run().ok, 3);
  world.options.campaign = "night-2";
  EXPECT_EQ(world.Run().ok, 3);
  EXPECT_EQ(world.observer.start.finished, 0);
  EXPECT_THAT(world.measured, Each(Pair(testing::_, 2)));
  EXPECT_EQ(world.Run().ok, 3);
  EXPECT_EQ(world.observer.start.finished, 3);
  world.options.campaign = kDefaultCampaign;
  EXPECT_EQ(world.Run().ok, 3);
  EXPECT_THAT(world.measured, Each(Pair(testing::_, 2))) << "both have it by now";
  EXPECT_EQ(world.Count("SELECT count(*) FROM measurements"), 6);
  EXPECT_EQ(world.Count("SELECT count(*) FROM runs"), 3);
  EXPECT_EQ(world.Count("SELECT count(*) FROM runs WHERE campaign = 'night-2'"), 3) << "the newest";
  EXPECT_THAT(world.OpenStore().Check(), IsEmpty());
}

TEST(DriverCampaign, AnotherTrainerIsNotGivenTheFiguresOfTheFirst) {
  World world(2);
  EXPECT_EQ(world.Run().ok, 2);
  const std::string engine = world.yaml;
  world.yaml = engine + "launch: {trainer: [/opt/train.sh, --fast]}\n";
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_THAT(world.measured, Each(Pair(testing::_, 2)));
  world.yaml = engine + "launch: {trainer: [/elsewhere/train.sh, --fast]}\n";
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_THAT(world.measured, Each(Pair(testing::_, 2))) << "it is the same program, wherever it lies";
  world.yaml = engine + "launch: {trainer: [/opt/train.sh, --fast], cpus: 2}\n";
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_THAT(world.measured, Each(Pair(testing::_, 3)));
  EXPECT_EQ(world.Count("SELECT count(*) FROM runs"), 6);
  EXPECT_EQ(world.Count("SELECT count(*) FROM sweep_runs"), 2) << "the sweep's own";
  world.yaml = engine;
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_THAT(world.measured, Each(Pair(testing::_, 3)));
}

TEST(DriverCampaign, KilledAnywhereEveryPointHasOneResultOfEach) {
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
    // The first campaign is killed somewhere. The second begins while the first one's jobs may still live, and is
    // killed too.
    int chances = 0;
    const auto die = [&] {
      if (++chances == kill_at) throw Killed();
    };
    bool killed = false;
    for (const char* campaign : {"first", "second", "first", "second"}) {
      world.options.campaign = campaign;
      world.step = die;
      chances = 0;
      try {
        world.Run();
      } catch (const Killed&) {
        killed = true;
      }
    }
    world.step = nullptr;
    if (!killed) survived_at = kill_at;
    for (const char* campaign : {"first", "second"}) {
      world.options.campaign = campaign;
      ASSERT_EQ(world.Run().ok, 3) << campaign << ", killed at chance " << kill_at;
    }
    ASSERT_THAT(world.measured, Each(Pair(testing::_, 2))) << "killed at chance " << kill_at;
    ASSERT_EQ(world.Count("SELECT count(*) FROM results"), 6) << "killed at chance " << kill_at;
    ASSERT_EQ(world.Count("SELECT count(*) FROM (SELECT DISTINCT point_id, campaign FROM results)"), 6);
    ASSERT_THAT(world.OpenStore().Check(), IsEmpty()) << "killed at chance " << kill_at;
  }
  EXPECT_GT(survived_at, 20) << "too few chances to be killed for this test to mean anything";
}

TEST(DriverCampaign, JobsOfAnotherAreWaitedForAndTheirResultsAreItsOwn) {
  World world(2);
  world.yaml += "launch: {bundle: 2}\n";
  world.options.campaign = "first";
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { entry.phase = launch::JobPhase::kRunning; };
  world.step = [&] {
    if (world.launcher.poll_calls > 3) throw Killed();
  };
  EXPECT_THROW(world.Run(), Killed);
  world.step = nullptr;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry); };
  world.options.campaign = "second";
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_THAT(world.observer.notes, Contains(HasSubstr("for the campaign first")));
  EXPECT_THAT(world.observer.ended, SizeIs(2)) << "its own";
  EXPECT_EQ(world.observer.last.total, 2);
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE campaign = 'first'"), 2);
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE campaign = 'second'"), 2);
}

TEST(DriverCampaign, AnIntentOfAnotherTrainerIsNotMadeAgainWithThisOne) {
  World world(1);
  world.RunKilledAtSubmit();
  std::filesystem::remove_all(world.dir / "jobs");
  world.yaml += "launch: {trainer: [/opt/train.sh]}\n";
  EXPECT_EQ(world.Run().ok, 1);
  EXPECT_EQ(world.Count("SELECT count(*) FROM jobs WHERE state = 'lost'"), 1);
  EXPECT_EQ(world.Count("SELECT count(*) FROM runs WHERE status = 'ok' AND trainer = 'train.sh'"), 1);
}

TEST(DriverCampaign, RecordsPointsThatCannotFitOnceInEach) {
  World world(1);
  world.forecast = [](const RunSpec&) { return int64_t{1} << 40; };
  world.options.node = {1'000'000'000, "free here"};
  for (const char* campaign : {"first", "second", "first"}) {
    world.options.campaign = campaign;
    EXPECT_EQ(world.Run().failed, 1);
  }
  EXPECT_EQ(world.Count("SELECT count(*) FROM results"), 2);
}

TEST(DriverCampaign, AnotherDoesNotFindItsStepsDone) {
  World world(1);
  world.yaml += "checkpoint: {dir: saved}\n";
  std::set<std::string> folders;
  world.launcher.on_submit = [&](const launch::LaunchJob& job) {
    const Job read = DecodeJob(ReadJsonFile(job.job_file), job.job_file.string());
    EXPECT_TRUE(folders.insert(read.points.at(0).spec.checkpoint_dir).second) << "it is another's";
  };
  EXPECT_EQ(world.Run().ok, 1);
  world.options.campaign = "second";
  EXPECT_EQ(world.Run().ok, 1);
  world.yaml += "launch: {cpus: 1}\n";
  EXPECT_EQ(world.Run().ok, 1);
  EXPECT_THAT(folders, SizeIs(3));
}

TEST(DriverCampaign, SaysHowMuchOfItAnotherMachineOrBuildMeasured) {
  World world(3);
  world.environment = {{"cpu", "Example CPU"}, {"cores", "2"}, {"version", "1"}, {"git_commit", "abc"}};
  EXPECT_EQ(world.Run().ok, 3);
  world.options.here = {{"cpu", "Example CPU"}, {"cores", "4"}, {"memory", "24 GiB"}, {"version", "1"}};
  world.Run();
  EXPECT_EQ(world.observer.start.elsewhere, 0) << "what one of them does not say, tells nothing";
  world.options.here["git_commit"] = "def";
  world.Run();
  EXPECT_EQ(world.observer.start.finished, 3);
  EXPECT_EQ(world.observer.start.elsewhere, 3);
  world.options.here = {{"cpu", "Another CPU"}};
  world.Run();
  EXPECT_EQ(world.observer.start.elsewhere, 3);
  EXPECT_EQ(world.Count("SELECT count(*) FROM runs WHERE machine = 'Example CPU; 2 cores' AND version = '1 (abc)'"), 3);
}

}  // namespace
}  // namespace ridgeline::driver
