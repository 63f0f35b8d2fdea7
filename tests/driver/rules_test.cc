// Points with different requirements: all points of a job have the same ones, whatever is killed meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/driver/world.h"

namespace ridgeline::driver {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr const char* kLaunch =
    "launch:\n  trainer: [/bin/false]\n  bundle: 2\n  time_limit: 1m\n  slurm: {partition: small}\n  rules:\n"
    "    - {when: {seed: [2, 4]}, set: {nodes: 3, cpus: 2, time_limit: 2m, slurm: {partition: large}}}\n";

// Points with odd seeds are in one job, points with even seeds in another.
class RulesWorld : public World {
 public:
  RulesWorld() : World(4) {
    const std::string shape = "seq_length: 64";
    yaml.replace(yaml.find(shape), shape.size(), shape + ", ranks: 3");
    yaml += kLaunch;
  }

  void ExpectEveryJobAsItsPointsAsk() {
    for (const auto& [key, entry] : launcher.jobs) {
      const Job job = DecodeJob(ReadJsonFile(entry.job.job_file), "job");
      for (const JobPoint& point : job.points) {
        const bool large = point.spec.seed % 2 == 0;
        EXPECT_EQ(entry.job.nodes, large ? 3 : 1);
        EXPECT_EQ(entry.job.cpus, large ? 2 : 0);
        EXPECT_EQ(point.time_limit_s, large ? 120 : 60);
        EXPECT_EQ(entry.job.config.is_null(), !large);
        EXPECT_EQ(DumpJson(entry.job.config).find("large") != std::string::npos, large);
      }
    }
  }
};

TEST(DriverRules, JobsAreOfPointsThatAskForTheSame) {
  RulesWorld world;
  world.launcher.max_jobs = 10;
  EXPECT_EQ(world.Run().ok, 4);
  EXPECT_THAT(world.launcher.jobs, SizeIs(2));
  world.ExpectEveryJobAsItsPointsAsk();
  EXPECT_THAT(world.measured, Each(Pair(testing::_, 1)));
}

TEST(DriverRules, APointsMeasurementSaysItsOwnCores) {
  RulesWorld world;
  world.Run();
  EXPECT_EQ(world.Count("SELECT count(*) FROM runs WHERE cpus = 2 AND seed IN (2, 4)"), 2);
  EXPECT_EQ(world.Count("SELECT count(*) FROM runs WHERE cpus = 0 AND seed IN (1, 3)"), 2);
  EXPECT_THAT(world.OpenStore().Check(), IsEmpty());
}

TEST(DriverRules, ARuleThatChangesMeasuresOnlyItsPointsAnew) {
  RulesWorld world;
  world.Run();
  EXPECT_EQ(world.Run().ok, 4);
  EXPECT_EQ(world.observer.start.finished, 4);
  world.yaml.replace(world.yaml.find("cpus: 2"), 7, "cpus: 1");
  EXPECT_EQ(world.Run().ok, 4);
  EXPECT_EQ(world.observer.start.finished, 2);
  world.yaml.replace(world.yaml.find("time_limit: 2m"), 14, "time_limit: 3m");
  EXPECT_EQ(world.Run().ok, 4);
  EXPECT_EQ(world.observer.start.finished, 4) << "how long it may take changes no figure";
}

TEST(DriverRules, KilledAnywhereEveryJobIsStillAsItsPointsAsk) {
  bool survived = false;
  for (int kill_at = 1; !survived; ++kill_at) {
    ASSERT_LT(kill_at, 2000) << "the run never ends";
    RulesWorld world;
    world.options.max_parallel = 2;
    int chances = 0;
    world.step = [&] {
      if (++chances == kill_at) throw Killed();
    };
    try {
      world.Run();
      survived = true;
    } catch (const Killed&) {
    }
    world.step = nullptr;
    ASSERT_EQ(world.Run().ok, 4) << "killed at chance " << kill_at;
    ASSERT_THAT(world.measured, Each(Pair(testing::_, 1))) << "killed at chance " << kill_at;
    world.ExpectEveryJobAsItsPointsAsk();
    if (testing::Test::HasFailure()) FAIL() << "killed at chance " << kill_at;
  }
}

// Leaves the intents of all jobs. The launcher has none of these jobs.
void KillAtSubmit(RulesWorld& world) {
  world.options.max_parallel = 2;
  world.RunKilledAtSubmit();
}

TEST(DriverRules, AnIntentIsSubmittedAsItWasMeantWhateverTheSweepSaysNow) {
  RulesWorld world;
  KillAtSubmit(world);
  world.yaml.replace(world.yaml.find("partition: large"), 16, "partition: other");
  EXPECT_EQ(world.Run().ok, 4);
  EXPECT_EQ(world.observer.start.adopted_jobs, 2);
  world.ExpectEveryJobAsItsPointsAsk();
}

TEST(DriverRules, AnIntentWithoutItsFileIsMadeAgainByTheRules) {
  RulesWorld world;
  KillAtSubmit(world);
  std::filesystem::remove_all(world.dir / "jobs");
  EXPECT_EQ(world.Run().ok, 4);
  EXPECT_EQ(world.observer.start.adopted_jobs, 2);
  world.ExpectEveryJobAsItsPointsAsk();
}

TEST(DriverRules, AnIntentOfAnotherSetupIsNotMadeAgain) {
  RulesWorld world;
  KillAtSubmit(world);
  std::filesystem::remove_all(world.dir / "jobs");
  world.yaml.replace(world.yaml.find("cpus: 2"), 7, "cpus: 1");
  EXPECT_EQ(world.Run().ok, 4);
  EXPECT_EQ(world.observer.start.adopted_jobs, 1) << "that of the points no rule speaks of";
  EXPECT_EQ(world.Count("SELECT count(*) FROM runs WHERE cpus = 1"), 2);
}

}  // namespace
}  // namespace ridgeline::driver
