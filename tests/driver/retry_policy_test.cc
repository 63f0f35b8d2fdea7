#include "driver/retry_policy.h"

#include <gtest/gtest.h>

#include "driver/patience.h"

namespace ridgeline::driver {
namespace {

TEST(TryAgain, WaitsLongerAndLongerToABound) {
  EXPECT_EQ(TryAgainNs(1), 2 * kTryAgainNs);
  EXPECT_EQ(TryAgainNs(2), 4 * kTryAgainNs);
  EXPECT_EQ(TryAgainNs(20), kMostTryAgainNs);
  EXPECT_EQ(TryAgainNs(1'000'000), kMostTryAgainNs);
}

TEST(IsSubmittedAgain, AFewTimesWhereTheInfrastructureFailed) {
  const launch::Submission refusal{"rl-a", "", Error(ErrorKind::kInfrastructure, "busy"), false};
  EXPECT_TRUE(IsSubmittedAgain(refusal, 1));
  EXPECT_TRUE(IsSubmittedAgain(refusal, kSubmitTries - 1));
  EXPECT_FALSE(IsSubmittedAgain(refusal, kSubmitTries));
}

TEST(IsSubmittedAgain, NeverAJobThatIsWrong) {
  EXPECT_FALSE(IsSubmittedAgain({"rl-a", "", Error(ErrorKind::kInvalidInput, "no such partition"), false}, 1));
}

TEST(IsSubmittedAgain, AlwaysWhereItIsOnlyNotNow) {
  EXPECT_TRUE(IsSubmittedAgain({"rl-a", "", Error(ErrorKind::kInfrastructure, "the table is full"), true}, 1000));
}

class PointRetriesTest : public testing::Test {
 protected:
  std::map<InfrastructureReason, int64_t> limits_ = {
      {InfrastructureReason::kPreempted, 2}, {InfrastructureReason::kLost, 1}, {InfrastructureReason::kNode, 0}};
  PointRetries retries_{limits_};
};

TEST_F(PointRetriesTest, AsOftenAsTheSweepSaysAfterEachEnd) {
  EXPECT_TRUE(retries_.RunAgainAfterNs("p", InfrastructureReason::kPreempted, true));
  EXPECT_TRUE(retries_.RunAgainAfterNs("p", InfrastructureReason::kLost, true)) << "each end has its own count";
  EXPECT_TRUE(retries_.RunAgainAfterNs("p", InfrastructureReason::kPreempted, true));
  EXPECT_FALSE(retries_.RunAgainAfterNs("p", InfrastructureReason::kPreempted, true));
  EXPECT_FALSE(retries_.RunAgainAfterNs("p", InfrastructureReason::kLost, true));
  EXPECT_FALSE(retries_.RunAgainAfterNs("p", InfrastructureReason::kNode, true));
  EXPECT_TRUE(retries_.RunAgainAfterNs("another", InfrastructureReason::kPreempted, true));
}

TEST_F(PointRetriesTest, DoNotRepeatAFinalEnd) {
  EXPECT_FALSE(retries_.RunAgainAfterNs("p", RunStatus::kOk, true));
  EXPECT_FALSE(retries_.RunAgainAfterNs("p", RunStatus::kCrashed, true));
}

TEST_F(PointRetriesTest, APointThatNeverBeganIsOwedItsTurn) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(retries_.RunAgainAfterNs("p", InfrastructureReason::kLost, false));
  EXPECT_TRUE(retries_.RunAgainAfterNs("p", InfrastructureReason::kLost, true)) << "none of that counted";
  EXPECT_FALSE(retries_.RunAgainAfterNs("p", InfrastructureReason::kLost, true));
}

TEST_F(PointRetriesTest, AFailedPointWaitsLongerEachTime) {
  limits_[InfrastructureReason::kNode] = 40;
  EXPECT_EQ(retries_.RunAgainAfterNs("p", InfrastructureReason::kNode, true), kRunAgainNs);
  EXPECT_EQ(retries_.RunAgainAfterNs("p", InfrastructureReason::kPreempted, true), 0) << "nothing is to be mended";
  EXPECT_EQ(retries_.RunAgainAfterNs("p", InfrastructureReason::kLost, true), 2 * kRunAgainNs);
  EXPECT_EQ(retries_.RunAgainAfterNs("p", InfrastructureReason::kNode, true), 4 * kRunAgainNs);
  EXPECT_EQ(retries_.RunAgainAfterNs("another", InfrastructureReason::kNode, true), kRunAgainNs);
  for (int i = 0; i < 30; ++i) retries_.RunAgainAfterNs("p", InfrastructureReason::kNode, true);
  EXPECT_EQ(retries_.RunAgainAfterNs("p", InfrastructureReason::kNode, true), kMostRunAgainNs);
}

TEST(LauncherPatience, LastsFromTheFirstFailureOn) {
  LauncherPatience patience(60);
  EXPECT_FALSE(patience.NotAnswered(1000));
  EXPECT_FALSE(patience.NotAnswered(1059));
  EXPECT_TRUE(patience.NotAnswered(1060));
}

TEST(LauncherPatience, AnAnswerRestoresIt) {
  LauncherPatience patience(60);
  patience.NotAnswered(1000);
  patience.Answered();
  EXPECT_FALSE(patience.NotAnswered(5060));
}

}  // namespace
}  // namespace ridgeline::driver
