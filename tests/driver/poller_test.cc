#include "driver/poller.h"

#include <gmock/gmock.h>

#include "driver/patience.h"
#include "driver/submitter.h"
#include "tests/driver/jobs.h"

namespace ridgeline::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The launcher has two jobs. It reports `phase` for both.
class PollerTest : public JobsTest {
 protected:
  PollerTest() {
    TrainerFaults faults;
    const FaultWatch none(0, faults);
    Submitter(parts_, retries_, none, "/bin/false").Submit(jobs_);
    world_.launcher.on_poll = [this](FakeLauncher::Entry& entry) {
      if (fails_) throw Error(ErrorKind::kInfrastructure, "no controller");
      entry.phase = phase_;
      entry.evidence = evidence_;
    };
  }

  launch::JobPhase phase_ = launch::JobPhase::kQueued;
  std::map<std::string, std::string> evidence_;
  bool fails_ = false;
  LauncherRetries retries_{parts_, sweep_.launch.launcher_timeout_s};
  Poller poller_{parts_, retries_};
};

TEST_F(PollerTest, AsksOneQuestionAboutAllJobs) {
  const auto outcome = poller_.Poll(jobs_);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(world_.launcher.poll_calls, 1);
  EXPECT_THAT(outcome->to_collect, IsEmpty());
}

TEST_F(PollerTest, AsksNothingWhereTheLauncherHasNoJob) {
  JobTable none;
  EXPECT_TRUE(poller_.Poll(none));
  EXPECT_EQ(world_.launcher.poll_calls, 0);
}

TEST_F(PollerTest, EndedJobsAreCollectedWithTheirEvidence) {
  phase_ = launch::JobPhase::kEnded;
  evidence_ = {{"end", "timeout"}};
  const auto outcome = poller_.Poll(jobs_);
  ASSERT_TRUE(outcome);
  ASSERT_THAT(outcome->to_collect, SizeIs(2));
  EXPECT_EQ(outcome->to_collect[0].state, store::JobRecord::State::kEnded);
  EXPECT_EQ(outcome->to_collect[0].evidence.at("end"), "timeout");
  EXPECT_THAT(outcome->ended, ElementsAre(&First(), &First() + 1));
  EXPECT_EQ(outcome->looked_at, outcome->ended);
}

TEST_F(PollerTest, AJobThatRunsIsKeptSoInTheStore) {
  phase_ = launch::JobPhase::kRunning;
  clock_.SleepNs(7);
  poller_.Poll(jobs_);
  EXPECT_EQ(StateOf(First()), "running");
  EXPECT_EQ(First().collected_ns, clock_.MonotonicNs()) << "what it waited in the queue is no time of its points";
}

TEST_F(PollerTest, LinesOfAJobThatEndedWellMayComeForAMinute) {
  phase_ = launch::JobPhase::kEnded;
  evidence_ = {{"exit_code", "0"}};
  EXPECT_TRUE(poller_.Poll(jobs_)->to_collect.at(0).lines_may_come);
  clock_.SleepNs(kLinesMayComeNs);
  EXPECT_FALSE(poller_.Poll(jobs_)->to_collect.at(0).lines_may_come);
}

TEST_F(PollerTest, NoLinesComeOfAJobOfWhichMoreIsKnown) {
  phase_ = launch::JobPhase::kEnded;
  for (const auto& known : {std::pair("exit_code", "3"), std::pair("signal", "9"), std::pair("end", "timeout"),
                            std::pair("message", "its log was cut")}) {
    evidence_ = {known};
    for (auto& entry : world_.launcher.jobs) entry.second.phase = launch::JobPhase::kRunning;
    EXPECT_FALSE(poller_.Poll(jobs_)->to_collect.at(0).lines_may_come) << known.first;
  }
}

TEST_F(PollerTest, AJobThatHasAllResultsAndHangsIsToldToEnd) {
  phase_ = launch::JobPhase::kRunning;
  First().record.points.front().has_result = true;
  EXPECT_THAT(poller_.Poll(jobs_)->ended, IsEmpty());
  clock_.SleepNs(kDoneButRunningNs - 1);
  EXPECT_THAT(poller_.Poll(jobs_)->ended, IsEmpty());
  clock_.SleepNs(1);
  const auto outcome = poller_.Poll(jobs_);
  EXPECT_THAT(outcome->ended, ElementsAre(&First()));
  EXPECT_EQ(outcome->to_collect.at(0).state, store::JobRecord::State::kEnded);
  EXPECT_THAT(world_.launcher.cancelled, ElementsAre(First().record.key));
  EXPECT_THAT(world_.observer.notes, ElementsAre("a job still ran though all results were there, and was told to end"));
}

// Its nodes share no folder, so nothing ends the other node (tests/collect/broken_gang_test.cc).
TEST_F(PollerTest, AGangWithANodeThatFailedIsToldToEndAMinuteLater) {
  phase_ = launch::JobPhase::kRunning;
  evidence_ = {{"end", "cancelled"}, {"message", "the job was cancelled"}, {"pod", "rl-1-0"}};
  First().results.failed_part = "oom_device: n2: because";
  poller_.Poll(jobs_);
  clock_.SleepNs(kBrokenGangNs - 1);
  poller_.Poll(jobs_);
  EXPECT_THAT(world_.launcher.cancelled, IsEmpty());
  clock_.SleepNs(1);
  poller_.Poll(jobs_);
  poller_.Poll(jobs_);
  EXPECT_THAT(world_.launcher.cancelled, ElementsAre(First().record.key));
  EXPECT_EQ(AdoptJob(store_.LiveJobs().at(0), {}).gang_ended, "oom_device: n2: because") << "whoever goes on with it";
  phase_ = launch::JobPhase::kEnded;
  const auto outcome = poller_.Poll(jobs_);
  const std::map<std::string, std::string> evidence = {{"pod", "rl-1-0"}, {"gang_ended", "oom_device: n2: because"}};
  EXPECT_EQ(outcome->to_collect.at(0).evidence, evidence) << "that we ended it is not how it ended";
  EXPECT_EQ(outcome->to_collect.at(1).evidence.at("end"), "cancelled");
}

TEST_F(PollerTest, AGangWhoseFirstNodeEndedWellLongAgoIsToldToEnd) {
  phase_ = launch::JobPhase::kRunning;
  First().results.awaiting = "a";
  poller_.Poll(jobs_);
  clock_.SleepNs(kOthersEndNs - 1);
  First().results.awaiting = "b";
  poller_.Poll(jobs_);
  clock_.SleepNs(kOthersEndNs - 1);
  poller_.Poll(jobs_);
  EXPECT_THAT(world_.launcher.cancelled, IsEmpty()) << "each point has its time";
  clock_.SleepNs(1);
  poller_.Poll(jobs_);
  poller_.Poll(jobs_);
  EXPECT_THAT(world_.launcher.cancelled, ElementsAre(First().record.key));
  EXPECT_FALSE(AdoptJob(store_.LiveJobs().at(0), {}).gang_ended.empty());
  EXPECT_THAT(world_.observer.notes,
              ElementsAre("job " + First().record.key +
                          " has a node that has not ended 10 minutes after the first had ended well, and was told to "
                          "end"));
}

TEST_F(PollerTest, ADriverThatGoesOnWithAGangDoesNotBeginItsTimeAnew) {
  phase_ = launch::JobPhase::kRunning;
  First().results.awaiting = "a";
  poller_.Poll(jobs_);
  clock_.SleepNs(kOthersEndNs - 1);
  First() = AdoptJob(store_.LiveJobs().at(0), {});
  EXPECT_EQ(First().awaiting, "a");
  poller_.Poll(jobs_);
  EXPECT_THAT(world_.launcher.cancelled, IsEmpty());
  clock_.SleepNs(1);
  poller_.Poll(jobs_);
  EXPECT_THAT(world_.launcher.cancelled, ElementsAre(First().record.key));
}

TEST_F(PollerTest, ALogThatCannotBeReadIsSaidOnceAndCounted) {
  phase_ = launch::JobPhase::kRunning;
  evidence_ = {{"log_problem", "cannot read the log of pod x"}};
  poller_.Poll(jobs_);
  ASSERT_THAT(world_.observer.notes, SizeIs(1));
  EXPECT_THAT(world_.observer.notes.front(), testing::HasSubstr("cannot read the log of pod x"));
  EXPECT_EQ(poller_.UnreadLogs(), "") << "it may yet be read";
  phase_ = launch::JobPhase::kEnded;
  poller_.Poll(jobs_);
  poller_.Poll(jobs_);
  EXPECT_THAT(poller_.UnreadLogs(), testing::StartsWith("the logs of 2 jobs could not be read whole"));
  EXPECT_THAT(world_.observer.notes, SizeIs(1));
}

TEST_F(PollerTest, ASingleResultIsLookedForInAQueueWhileItsJobRuns) {
  phase_ = launch::JobPhase::kRunning;
  poller_.Poll(jobs_);
  clock_.SleepNs(kSingleCollectNs);
  EXPECT_THAT(poller_.Poll(jobs_)->to_collect, IsEmpty()) << "this machine's jobs end when they are done";
  world_.launcher.max_jobs = 100;
  EXPECT_THAT(poller_.Poll(jobs_)->to_collect, SizeIs(2));
}

TEST_F(PollerTest, ResultsOfABundleAreLookedForWhileItRuns) {
  First().record.points.push_back({"another", 1, false});
  phase_ = launch::JobPhase::kRunning;
  EXPECT_THAT(poller_.Poll(jobs_)->to_collect, IsEmpty());
  clock_.SleepNs(kPartialCollectNs);
  const auto outcome = poller_.Poll(jobs_);
  EXPECT_THAT(outcome->looked_at, ElementsAre(&First())) << "the other has one point";
  EXPECT_THAT(outcome->ended, IsEmpty());
}

TEST_F(PollerTest, AMissingJobIsLostOnlyAfterAWhile) {
  phase_ = launch::JobPhase::kMissing;
  EXPECT_THAT(poller_.Poll(jobs_)->ended, IsEmpty());
  clock_.SleepNs(kMissingNs - 1);
  phase_ = launch::JobPhase::kQueued;
  poller_.Poll(jobs_);
  phase_ = launch::JobPhase::kMissing;
  EXPECT_THAT(poller_.Poll(jobs_)->ended, IsEmpty());
  clock_.SleepNs(kMissingNs - 1);
  EXPECT_THAT(poller_.Poll(jobs_)->ended, IsEmpty()) << "it was seen in between";
  clock_.SleepNs(1);
  const auto outcome = poller_.Poll(jobs_);
  ASSERT_THAT(outcome->to_collect, SizeIs(2));
  EXPECT_EQ(outcome->to_collect[0].state, store::JobRecord::State::kLost);
}

TEST_F(PollerTest, SaysOnceWhatJobsWaitFor) {
  evidence_ = {{"waits", "held by its owner"}, {"hint", "release it"}};
  poller_.Poll(jobs_);
  poller_.Poll(jobs_);
  EXPECT_THAT(world_.observer.notes, ElementsAre("waits: held by its owner; release it"));
}

TEST_F(PollerTest, SaysOnceWhatJobsWaitForHoweverTheySayIt) {
  for (const char* said : {"Job a: ErrImagePull", "Job b: ErrImagePull", "Job a: ImagePullBackOff"}) {
    evidence_ = {{"waits", said}, {"waits_for", "image x"}};
    poller_.Poll(jobs_);
  }
  EXPECT_THAT(world_.observer.notes, ElementsAre("waits: Job a: ErrImagePull"));
}

TEST_F(PollerTest, KeepsWhyAndUntilWhenAJobWaits) {
  const auto kept = [&] {
    return std::get<std::string>(world_.Query("SELECT evidence FROM jobs ORDER BY number LIMIT 1").rows.at(0).at(0));
  };
  evidence_ = {{"pending", "Priority"}, {"expected_unix_s", "1795310999"}};
  poller_.Poll(jobs_);
  EXPECT_EQ(First().pending, "Priority");
  EXPECT_EQ(First().expected_s, 1795310999);
  EXPECT_EQ(kept(), R"({"expected_unix_s":"1795310999","pending":"Priority"})");
  EXPECT_EQ(StateOf(First()), "submitted");
  evidence_["expected_unix_s"] = "1795311010";
  poller_.Poll(jobs_);
  EXPECT_EQ(First().expected_s, 1795310999) << "a little is nothing new";
  phase_ = launch::JobPhase::kRunning;
  evidence_.clear();
  poller_.Poll(jobs_);
  EXPECT_EQ(kept(), "{}") << "it waits no more";
}

TEST_F(PollerTest, LeavesTheLauncherAloneAsLongAsItWishes) {
  world_.launcher.poll_pause_ns = 20'000'000'000;
  poller_.Poll(jobs_);
  poller_.Pause();
  clock_.SleepNs(world_.launcher.poll_pause_ns - 1);
  EXPECT_FALSE(poller_.Poll(jobs_));
  clock_.SleepNs(1);
  EXPECT_TRUE(poller_.Poll(jobs_));
}

TEST_F(PollerTest, AQuestionThatFailsIsAskedAgainLaterAndNotForEver) {
  fails_ = true;
  EXPECT_THAT(poller_.Poll(jobs_)->to_collect, IsEmpty());
  poller_.Pause();
  EXPECT_FALSE(poller_.Poll(jobs_)) << "not at once";
  clock_.SleepNs(kMostTryAgainNs);
  fails_ = false;
  EXPECT_TRUE(poller_.Poll(jobs_));
  fails_ = true;
  poller_.Poll(jobs_);
  clock_.SleepNs(sweep_.launch.launcher_timeout_s * 1'000'000'000);
  EXPECT_THROW(poller_.Poll(jobs_), Error);
  EXPECT_THAT(world_.observer.notes, ElementsAre("asking again: no controller")) << "said once";
}

}  // namespace
}  // namespace ridgeline::driver
