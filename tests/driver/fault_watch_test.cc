#include "driver/fault_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridgeline::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FaultWatchTest : public testing::Test {
 protected:
  static collect::Collected Ended(const RunEnd& end, const std::string& node,
                                  const std::string& message = "it failed") {
    collect::Collected result;
    result.end = end;
    result.node = node;
    result.message = message;
    return result;
  }
  // Each failure is of a different job.
  std::vector<std::string> Failed(const std::string& node, const std::string& message = "it failed") {
    std::vector<std::string> notes;
    for (const auto& found :
         watch_.PointEnded("rl-" + std::to_string(++jobs_), Ended(InfrastructureReason::kNode, node, message))) {
      EXPECT_THAT(found.withdrawn, HasSubstr("withdrawn before it began"));
      notes.push_back(found.note);
    }
    return notes;
  }

  // Each end is of a different point.
  std::vector<std::string> PointEnded(const RunEnd& end, const std::string& message) {
    collect::Collected result = Ended(end, "", message);
    result.point_id = "p" + std::to_string(++jobs_);
    std::vector<std::string> notes;
    for (const auto& found : watch_.PointEnded("rl-" + result.point_id, result)) notes.push_back(found.note);
    return notes;
  }

  TrainerFaults trainer_;
  FaultWatch watch_{3, trainer_};
  int jobs_ = 0;
};

TEST_F(FaultWatchTest, ANodeIsLeftOutFromItsSecondFailureOn) {
  EXPECT_THAT(Failed("n1", "no disk"), IsEmpty());
  EXPECT_THAT(Failed("n2", "no image"), IsEmpty());
  EXPECT_THAT(Failed("n1", "no disk"), ElementsAre("n1 is set aside, as long as others can take jobs: 2 jobs "
                                                   "failed on it, the last: no disk"));
  EXPECT_THAT(Failed("n1", "no image"), IsEmpty()) << "it is said once";
  EXPECT_THAT(watch_.avoid(), ElementsAre("n1"));
}

TEST_F(FaultWatchTest, IfNoNodeIsLeftTheLastOneSetAsideIsUsedAgainForGood) {
  for (const char* node : {"bad", "bad", "n2", "n2"}) Failed(node, "no disk");
  FaultWatch::Finding found = watch_.UseAgain("none\nthere");
  EXPECT_EQ(found.note, "n2 is used again, as no other node can take its jobs: none\\nthere");
  EXPECT_EQ(found.withdrawn, "withdrawn before it began, to be let on n2 again");
  EXPECT_THAT(watch_.avoid(), ElementsAre("bad"));
  for (int i = 0; i < 9; ++i) Failed("n2", i % 2 == 0 ? "no disk" : "no image");
  EXPECT_THAT(watch_.avoid(), ElementsAre("bad"));
  watch_.UseAgain("none there");
  EXPECT_THAT(watch_.avoid(), IsEmpty());
  EXPECT_THAT(watch_.UseAgain("none there").note,
              HasSubstr("jobs of an earlier run find no node and are submitted again"));
}

TEST_F(FaultWatchTest, NamesTheNodesThatWereSetAsideWithWhatFailedThere) {
  EXPECT_EQ(watch_.SetAside(), "");
  Failed("n0", "once");
  for (const char* node : {"n2", "n1", "n2", "n1", "n1"}) Failed(node, std::string(300, 'x') + "\x1b[31m");
  watch_.UseAgain("none there");
  const std::string words = std::string(159, 'x') + "…";
  EXPECT_EQ(watch_.SetAside(),
            "n1, where 3 jobs failed, the last: " + words + "; n2, where 2 jobs failed, the last: " + words);
  for (const char* node : {"n3", "n4", "n5"}) {
    for (int i = 0; i < 2; ++i) Failed(node, "no\ndisk");
  }
  EXPECT_THAT(watch_.SetAside(), ::testing::EndsWith("n3, where 2 jobs failed, the last: no\\ndisk; 2 more"));
}

TEST_F(FaultWatchTest, PointsOfOneJobAreOneFailure) {
  for (int i = 0; i < 9; ++i) watch_.PointEnded("rl-a", Ended(InfrastructureReason::kStorage, "n1"));
  EXPECT_THAT(watch_.avoid(), IsEmpty());
  EXPECT_EQ(watch_.given_up(), "");
}

// If an image is missing, a disk is full or a program is not installed, the next node has the same problem.
TEST_F(FaultWatchTest, TheSweepsOwnFaultsSetNoNodeAsideAndCountEachTime) {
  using enum InfrastructureReason;
  for (const InfrastructureReason reason : {kStart, kStorage, kImage, kLimit, kRights}) {
    FaultWatch watch(3, trainer_);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(watch.given_up(), "");
      watch.PointEnded("rl-" + std::to_string(i), Ended(reason, "n1"));
    }
    EXPECT_THAT(watch.avoid(), IsEmpty()) << ReasonName(reason);
    EXPECT_EQ(watch.SetAside(), "");
    EXPECT_THAT(watch.given_up(), HasSubstr("3 jobs in a row failed alike"));
  }
  for (int i = 0; i < 2; ++i) watch_.PointEnded("rl-" + std::to_string(i), Ended(kLost, "n1"));
  EXPECT_THAT(watch_.avoid(), ElementsAre("n1"));
}

TEST_F(FaultWatchTest, NeverSetsTheOnlyMachineAside) {
  watch_.HaveOneMachine();
  for (int i = 0; i < 3; ++i) Failed("here");
  EXPECT_EQ(watch_.SetAside(), "");
  EXPECT_THAT(watch_.given_up(), HasSubstr("3 jobs in a row failed alike"));
}

TEST_F(FaultWatchTest, BlamesNoNodeIfSeveralOrNoneAreNamed) {
  int i = 0;
  for (const char* node : {"n1 n2", "n1 n2", "", ""}) EXPECT_THAT(Failed(node, i++ % 2 == 0 ? "a" : "b"), IsEmpty());
  EXPECT_THAT(watch_.avoid(), IsEmpty());
}

TEST_F(FaultWatchTest, GivesUpAfterSoManyAlikeInARow) {
  Failed("n1", "job rl-12 ended: no folder /data on n1");
  Failed("n2", "job rl-34 ended: no folder /data on n2");
  EXPECT_EQ(watch_.given_up(), "");
  EXPECT_THAT(Failed("n3", "job rl-56 ended: no folder /data on n3"),
              ElementsAre(HasSubstr("no more jobs are handed over: 3 jobs in a row failed alike")));
  EXPECT_THAT(watch_.given_up(), HasSubstr("3 jobs in a row failed alike, infrastructure (node): job rl-56"));
}

TEST_F(FaultWatchTest, ANodeThatFailsEachJobItGetsCountsOnceUntilItIsUsedAgain) {
  for (int i = 0; i < 9; ++i) Failed("black-hole");
  Failed("n2");
  EXPECT_EQ(watch_.given_up(), "") << "two nodes of a large cluster";
  watch_.UseAgain("none there");
  Failed("black-hole");
  EXPECT_THAT(watch_.given_up(), HasSubstr("3 jobs in a row failed alike")) << "there was no other node";
}

// If a scheduler has no other node, it may ignore that a job must avoid this one, and the job runs there.
TEST_F(FaultWatchTest, ANodeThatGetsJobsThoughTheyWereToBeKeptOffCountsEach) {
  Failed("n1");
  Failed("n1");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(watch_.given_up(), "");
    watch_.PointEnded("rl-kept-off-" + std::to_string(i), Ended(InfrastructureReason::kNode, "n1"), "n0 n1");
  }
  EXPECT_THAT(watch_.given_up(), HasSubstr("3 jobs in a row failed alike"));
}

TEST_F(FaultWatchTest, JobsOfUnknownNodesCountEach) {
  Failed("");
  Failed("n1 n2");
  EXPECT_EQ(watch_.given_up(), "");
  Failed("n1 n2");
  EXPECT_NE(watch_.given_up(), "");
}

TEST_F(FaultWatchTest, AnEndThatIsAPointsOwnBeginsANewRow) {
  for (int i = 0; i < 9; ++i) {
    Failed("a" + std::to_string(i));
    Failed("b" + std::to_string(i));
    watch_.PointEnded("ok", Ended(i % 2 == 0 ? RunStatus::kOk : RunStatus::kCrashed, "n"));
  }
  EXPECT_EQ(watch_.given_up(), "");
}

TEST_F(FaultWatchTest, OtherFailuresBeginANewRow) {
  for (int i = 0; i < 9; ++i) Failed("n" + std::to_string(i), i % 2 == 0 ? "no folder" : "no image");
  EXPECT_EQ(watch_.given_up(), "");
}

TEST_F(FaultWatchTest, JobsThatASchedulerForgotStopNothing) {
  for (int i = 0; i < 9; ++i) {
    EXPECT_THAT(watch_.PointEnded("rl-" + std::to_string(i), Ended(InfrastructureReason::kLost, "")), IsEmpty());
  }
  EXPECT_EQ(watch_.given_up(), "");
}

TEST_F(FaultWatchTest, AJobThatWasToldToLeaveHasNotFailed) {
  for (int i = 0; i < 9; ++i) {
    watch_.PointEnded("rl-" + std::to_string(i), Ended(InfrastructureReason::kPreempted, "n1"));
    watch_.PointEnded("rl-c" + std::to_string(i), Ended(RunStatus::kCancelled, "n1"));
  }
  EXPECT_THAT(watch_.avoid(), IsEmpty());
  EXPECT_EQ(watch_.given_up(), "");
}

TEST_F(FaultWatchTest, GivesUpWhereEachOfTheFirstPointsCrashesAlike) {
  EXPECT_THAT(PointEnded(RunStatus::kCrashed, "KeyError: 'lr' at point 17"), IsEmpty());
  Failed("n1");  // is measured again
  EXPECT_THAT(PointEnded(RunStatus::kCrashed, "KeyError: 'lr' at point 18"), IsEmpty());
  EXPECT_THAT(PointEnded(RunStatus::kCrashed, "KeyError: 'lr' at point 19"),
              ElementsAre(HasSubstr("no more jobs are handed over: each of the first 3 points ended alike, crashed: "
                                    "KeyError: 'lr' at point 19")));
  EXPECT_TRUE(watch_.is_trainers_fault());
  EXPECT_THAT(PointEnded(RunStatus::kCrashed, "KeyError: 'lr' at point 20"), IsEmpty()) << "it is said once";
}

TEST_F(FaultWatchTest, ATrainerThatIsRefusedEverywhereIsGivenUpTooOverAllRounds) {
  PointEnded(RunStatus::kInvalid, "error: --x");
  PointEnded(RunStatus::kInvalid, "error: --x");
  FaultWatch next(3, trainer_);
  collect::Collected result = Ended(RunStatus::kInvalid, "", "error: --x");
  result.point_id = "another";
  EXPECT_EQ(next.PointEnded("rl", result).size(), 1U);
}

TEST_F(FaultWatchTest, ATrainerThatDoesAnythingElseIsNotGivenUp) {
  for (const RunEnd end : {RunEnd(RunStatus::kOk), RunEnd(RunStatus::kOomDevice), RunEnd(RunStatus::kTimeout),
                           RunEnd(RunStatus::kDiverged), RunEnd(RunStatus::kInvalid)}) {
    trainer_ = {};
    PointEnded(RunStatus::kCrashed, "KeyError");
    PointEnded(end, "something else");
    for (int i = 0; i < 9; ++i) EXPECT_THAT(PointEnded(RunStatus::kCrashed, "KeyError"), IsEmpty());
  }
  trainer_ = {};
  for (int i = 0; i < 9; ++i) EXPECT_THAT(PointEnded(RunStatus::kOomDevice, "CUDA out of memory"), IsEmpty());
  trainer_ = {};
  for (int i = 0; i < 9; ++i) EXPECT_THAT(PointEnded(RunStatus::kCrashed, i % 2 == 0 ? "a" : "b"), IsEmpty());
  EXPECT_EQ(watch_.given_up(), "");
}

TEST_F(FaultWatchTest, OnePointThatCrashesAgainCountsOnce) {
  collect::Collected result = Ended(RunStatus::kCrashed, "", "KeyError");
  for (int i = 0; i < 9; ++i) EXPECT_THAT(watch_.PointEnded("rl-" + std::to_string(i), result), IsEmpty());
}

}  // namespace
}  // namespace ridgeline::driver
