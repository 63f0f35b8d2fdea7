#include "driver/job_status_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "driver/lock.h"
#include "tests/base/temp_dir.h"
#include "tests/fakes/fake_launcher.h"

namespace ridgeline::driver {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSecond = 1'000'000'000;

// Two jobs without a driver, on a launcher that reports what the test sets for both.
class JobStatusReaderTest : public ::testing::Test {
 protected:
  static store::JobRecord Job(const std::string& key, store::JobRecord::State state) {
    store::JobRecord job;
    job.key = key;
    job.sweep = "test";
    job.launcher = "fake";
    job.state = state;
    job.evidence = {{"pending", "as it was"}};
    return job;
  }
  std::vector<store::JobRecord> Jobs() const {
    return {Job("rl-1", store::JobRecord::State::kSubmitted), Job("rl-2", store::JobRecord::State::kRunning),
            Job("rl-3", store::JobRecord::State::kIntent)};
  }
  // Each question opens a new session.
  std::unique_ptr<launch::Launcher> Open() {
    ++opened_;
    auto launcher = std::make_unique<FakeLauncher>();
    launcher->max_jobs = queues_ ? 10 : 0;
    launcher->poll_pause_ns = 10 * kSecond;
    for (const char* key : {"rl-1", "rl-2", "rl-3"}) launcher->jobs[key].phase = phase_;
    launcher->on_poll = [this](FakeLauncher::Entry& entry) {
      ++asked_;
      EXPECT_FALSE(DriverLock::TakeForAMoment(dir_ / "a.db")) << "a driver might start meanwhile";
      if (fails_) throw Error(ErrorKind::kInfrastructure, "no controller");
      entry.evidence = {{"pending", "Priority"}, {"expected_unix_s", "7"}};
    };
    return launcher;
  }

  TempDir dir_;
  FakeClock clock_;
  launch::JobPhase phase_ = launch::JobPhase::kQueued;
  bool queues_ = true;
  bool fails_ = false;
  int opened_ = 0;
  int asked_ = 0;
  JobStatusReader onlooker_{dir_ / "a.db", clock_, [this](const store::JobRecord&) { return Open(); }};
};

TEST_F(JobStatusReaderTest, TellsWhyAndUntilWhenJobsWait) {
  std::vector<store::JobRecord> jobs = Jobs();
  EXPECT_EQ(onlooker_.Look(jobs), "");
  EXPECT_EQ(opened_, 1) << "one question for both";
  EXPECT_EQ(jobs[0].evidence.at("pending"), "Priority");
  EXPECT_EQ(jobs[0].evidence.at("expected_unix_s"), "7");
  EXPECT_EQ(jobs[1].state, store::JobRecord::State::kSubmitted) << "it was put back into the queue";
  EXPECT_EQ(jobs[2].evidence.at("pending"), "as it was") << "no launcher has it yet";
  EXPECT_EQ(asked_, 2);
  EXPECT_TRUE(DriverLock::TakeForAMoment(dir_ / "a.db")) << "it is held no longer than that";
}

TEST_F(JobStatusReaderTest, LeavesTheLauncherAloneAsLongAsItWishes) {
  std::vector<store::JobRecord> jobs = Jobs();
  onlooker_.Look(jobs);
  clock_.SleepNs(10 * kSecond - 1);
  jobs = Jobs();
  onlooker_.Look(jobs);
  EXPECT_EQ(opened_, 1);
  EXPECT_EQ(jobs[0].evidence.at("pending"), "Priority") << "what it said last";
  clock_.SleepNs(1);
  onlooker_.Look(jobs);
  EXPECT_EQ(opened_, 2);
}

TEST_F(JobStatusReaderTest, AnEndedJobIsEndedAndAMissingOneMayStillAppear) {
  phase_ = launch::JobPhase::kEnded;
  std::vector<store::JobRecord> jobs = Jobs();
  onlooker_.Look(jobs);
  EXPECT_EQ(jobs[0].state, store::JobRecord::State::kEnded);
  clock_.SleepNs(10 * kSecond);
  phase_ = launch::JobPhase::kMissing;
  jobs = Jobs();
  jobs[0].key = "unknown";
  onlooker_.Look(jobs);
  EXPECT_EQ(jobs[0].state, store::JobRecord::State::kSubmitted);
  EXPECT_EQ(jobs[0].evidence.at("pending"), "as it was");
}

TEST_F(JobStatusReaderTest, AsksNobodyWhereADriverIsAtWork) {
  const DriverLock driver = DriverLock::Take(dir_ / "a.db", "test");
  std::vector<store::JobRecord> jobs = Jobs();
  EXPECT_EQ(onlooker_.Look(jobs), "");
  EXPECT_EQ(opened_, 0);
  EXPECT_EQ(jobs[0].evidence.at("pending"), "as it was") << "as that driver keeps it";
}

TEST_F(JobStatusReaderTest, ALauncherWithoutAQueueIsNotAskedAsThatWouldStartWhatWaits) {
  queues_ = false;
  std::vector<store::JobRecord> jobs = Jobs();
  EXPECT_EQ(onlooker_.Look(jobs), "");
  EXPECT_EQ(asked_, 0);
}

TEST_F(JobStatusReaderTest, ALauncherThatDoesNotAnswerIsSaidAndHidesNothing) {
  fails_ = true;
  std::vector<store::JobRecord> jobs = Jobs();
  EXPECT_EQ(onlooker_.Look(jobs), "how these jobs of fake are could not be asked: no controller\n");
  EXPECT_EQ(jobs[0].evidence.at("pending"), "as it was");
}

}  // namespace
}  // namespace ridgeline::driver
