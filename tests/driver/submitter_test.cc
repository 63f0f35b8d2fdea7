#include "driver/submitter.h"

#include <gmock/gmock.h>

#include "driver/patience.h"
#include "tests/driver/jobs.h"

namespace ridgeline::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SubmitterTest : public JobsTest {
 protected:
  void Refuse(ErrorKind kind) {
    world_.launcher.on_submit = [kind](const launch::LaunchJob&) { throw Error(kind, "it says no", "ask it"); };
  }

  LauncherRetries retries_{parts_, sweep_.launch.launcher_timeout_s};
  TrainerFaults trainer_;
  FaultWatch faults_{0, trainer_};
  Submitter submitter_{parts_, retries_, faults_, "/bin/false"};
};

TEST_F(SubmitterTest, HandsOverWhatIsDueWithOneCallAndKeepsIt) {
  const Submitter::Outcome outcome = submitter_.Submit(jobs_);
  EXPECT_TRUE(outcome.asked);
  EXPECT_THAT(outcome.refused, IsEmpty());
  EXPECT_EQ(world_.launcher.submit_calls, 1);
  for (const LiveJob& job : jobs_) {
    EXPECT_FALSE(job.to_submit);
    EXPECT_EQ(job.record.native_id, "fake-" + job.record.key);
    EXPECT_EQ(job.submitted_ns, clock_.MonotonicNs());
    EXPECT_EQ(StateOf(job), "submitted");
  }
  EXPECT_FALSE(submitter_.Submit(jobs_).asked) << "there is nothing more";
  EXPECT_EQ(world_.launcher.submit_calls, 1);
  EXPECT_NO_THROW(submitter_.ThrowIfDown());
}

TEST_F(SubmitterTest, ARefusedJobIsTriedAgainLaterThenGivenUp) {
  Refuse(ErrorKind::kInfrastructure);
  for (int i = 1; i < kSubmitTries; ++i) {
    EXPECT_THAT(submitter_.Submit(jobs_).refused, IsEmpty());
    EXPECT_FALSE(submitter_.Submit(jobs_).asked) << "not at once";
    clock_.SleepNs(kMostTryAgainNs);
  }
  const Submitter::Outcome outcome = submitter_.Submit(jobs_);
  EXPECT_THAT(outcome.refused, SizeIs(2));
  ASSERT_THAT(outcome.ends, SizeIs(2));
  EXPECT_EQ(outcome.ends[0].state, store::JobRecord::State::kLost);
  EXPECT_THAT(outcome.ends[0].evidence.at("message"), HasSubstr("it says no"));
  EXPECT_THAT(world_.observer.notes, ElementsAre("not submitted, 2 jobs: it says no"));
  EXPECT_EQ(StateOf(First()), "intent") << "its end is for who collects it";
  EXPECT_NO_THROW(submitter_.ThrowIfDown()) << "two may have bad luck";
}

TEST_F(SubmitterTest, TakesALauncherForDownThatRefusesOneAfterTheOther) {
  Refuse(ErrorKind::kInfrastructure);
  int refused = 0;
  while (refused < kRefusedJobsInARow) {
    for (LiveJob& job : jobs_) job.submit_tries = kSubmitTries;
    refused += static_cast<int>(submitter_.Submit(jobs_).refused.size());
  }
  try {
    submitter_.ThrowIfDown();
    FAIL() << "it went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
    EXPECT_THAT(e.message(), HasSubstr("no jobs are taken: it says no"));
    EXPECT_EQ(e.hint(), "ask it");
  }
}

TEST_F(SubmitterTest, AJobThatIsWrongIsGivenUpAtOnceAndSoAreTheOthers) {
  Refuse(ErrorKind::kInvalidInput);
  EXPECT_THAT(submitter_.Submit(jobs_).refused, SizeIs(2));
  try {
    submitter_.ThrowIfDown();
    FAIL() << "it went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
  }
}

TEST_F(SubmitterTest, NotNowIsBorneForSoLong) {
  Refuse(ErrorKind::kInfrastructure);
  world_.launcher.not_now = true;
  const int64_t begin_ns = clock_.MonotonicNs();
  while (clock_.MonotonicNs() - begin_ns < sweep_.launch.launcher_timeout_s * 1'000'000'000) {
    EXPECT_THAT(submitter_.Submit(jobs_).refused, IsEmpty());
    clock_.SleepNs(kMostTryAgainNs);
  }
  EXPECT_THROW(submitter_.Submit(jobs_), Error);
  EXPECT_THAT(world_.observer.notes, ElementsAre("asking again: it says no")) << "said once";
}

}  // namespace
}  // namespace ridgeline::driver
