// Repeats go in rounds: every point has had one before any point has the next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/driver/world.h"

namespace ridgeline::driver {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class DriverRepeats : public ::testing::Test {
 protected:
  DriverRepeats() {
    world_.yaml += "measure: {repeats: 3}\n";
    world_.options.max_parallel = 1;
    world_.launcher.on_submit = [this](const launch::LaunchJob& job) {
      for (const JobPoint& point : DecodeJob(ReadJsonFile(job.job_file), job.job_file.string()).points) {
        turns_.emplace_back(point.spec.seed, point.repeat);
      }
    };
  }
  int64_t Standing() { return world_.Count("SELECT count(*) FROM results WHERE retry = 0 AND status = 'ok'"); }

  World world_{3};
  std::vector<std::pair<int64_t, int64_t>> turns_;  // seed, repeat
};

TEST_F(DriverRepeats, RunInRounds) {
  const RunSummary summary = world_.Run();
  EXPECT_EQ(summary.ok, 3);
  EXPECT_THAT(turns_, ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 1), Pair(1, 2), Pair(2, 2), Pair(3, 2), Pair(1, 3),
                                  Pair(2, 3), Pair(3, 3)));
  EXPECT_EQ(Standing(), 3);
  EXPECT_EQ(world_.Count("SELECT count(*) FROM results"), 9);
  EXPECT_EQ(world_.observer.last.total, 3);
  EXPECT_EQ(world_.observer.last.done, 3);
  EXPECT_THAT(world_.observer.notes, Contains(HasSubstr("seed=2: ok  1.23K tokens/s; repeat 1 of 3")));
  EXPECT_THAT(world_.observer.ended, Contains(HasSubstr("; repeat 3 of 3")));
  EXPECT_TRUE(world_.OpenStore().Check().empty());
}

TEST_F(DriverRepeats, APointWaitsForItsRoundBeforeItsNextRepeat) {
  // The last point of a round takes longest, and would come after all cheaper ones. No two points share a job.
  world_.yaml =
      "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nzip: {seed: [1, 2, 3], batch_size: [1, 2, 4]}\n"
      "measure: {repeats: 3}\nlaunch: {rules: [{when: {seed: 2}, set: {keep_logs: true}}]}\n";
  world_.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    entry.phase = launch::JobPhase::kRunning;
    if (entry.polls == 3) world_.Finish(entry);
  };
  EXPECT_EQ(world_.Run().ok, 3);
  EXPECT_THAT(turns_, ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 1), Pair(1, 2), Pair(2, 2), Pair(3, 2), Pair(1, 3),
                                  Pair(2, 3), Pair(3, 3)));
}

TEST_F(DriverRepeats, ContinueAfterARunWasKilled) {
  world_.step = [&] {
    if (turns_.size() >= 5) throw Killed();
  };
  EXPECT_THROW(world_.Run(), Killed);
  world_.step = nullptr;
  EXPECT_EQ(world_.Run().ok, 3);
  EXPECT_THAT(world_.measured, Each(Pair(::testing::_, 3)));
  EXPECT_EQ(Standing(), 3);
  EXPECT_EQ(world_.Count("SELECT count(*) FROM results"), 9);
}

TEST_F(DriverRepeats, OneThatFailsEndsItsPointAndARetryGoesOnWithIt) {
  world_.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    for (const JobPoint& point : DecodeJob(ReadJsonFile(entry.job.job_file), "the job").points) {
      const bool fails = point.spec.seed == 2 && point.repeat == 2;
      world_.WriteResult(entry.job.job_dir, point.id, fails ? RunStatus::kCrashed : RunStatus::kOk, point.repeat);
    }
    entry.phase = launch::JobPhase::kEnded;
  };
  const RunSummary summary = world_.Run();
  EXPECT_EQ(summary.ok, 2);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(turns_.size(), 8U);
  turns_.clear();
  world_.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world_.Finish(entry); };
  world_.options.retry_failed = true;
  EXPECT_EQ(world_.Run().ok, 3);
  EXPECT_THAT(turns_, ElementsAre(Pair(2, 2), Pair(2, 3))) << "what was measured stays";
}

}  // namespace
}  // namespace ridgeline::driver
