#include "node/classify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "run/result.h"
#include "tests/fakes/test_job.h"
#include "trainers/run_result.h"

namespace ridgeline::node {
namespace {

using ::testing::HasSubstr;
using testing::TestJob;

class Classified : public ::testing::Test {
 protected:
  Classified() {
    job_.memory_limit_bytes = 4'000'000'000;
    job_.points[0].time_limit_s = 60;
    end_.own_problem = "it wrote no result";
    end_.log_tail = "last words";
    end_.watched.rss_peak_bytes = 1'900'000;  // over all ranks
    end_.watched.rank_rss_peak_bytes = 1'000'000;
  }

  void Wrote(const RunEnd& end) {
    RunResult own;
    own.point_id = job_.points[0].id;
    SetEnd(end, own);
    own.loss = {1.5};
    end_.own = own;
    end_.own_problem.clear();
  }
  RunResult Result() { return Classify(job_, job_.points[0], end_); }

  Job job_ = TestJob("/nowhere", {"ok"});
  PointEnd end_;
};

TEST_F(Classified, AWholeOkResultIsTheResult) {
  Wrote(RunStatus::kOk);
  const RunResult result = Result();
  EXPECT_EQ(result.status, RunStatus::kOk);
  EXPECT_EQ(result.loss, std::vector<double>{1.5});
  EXPECT_EQ(result.evidence.at("exit_code"), "0");
  EXPECT_EQ(result.evidence.at("memory_limit_bytes"), "4000000000");
  EXPECT_EQ(result.evidence.count("log_tail"), 0U);
  EXPECT_EQ(result.memory.rss_peak_bytes, 1'000'000);
}

TEST_F(Classified, AMinuteOfHangingSaysNothingOfAUnit) {
  Wrote(RunStatus::kOk);
  end_.own->evidence[trainers::kUnitEvidence] = "is the unit right?";
  end_.watched.stopped = StopReason::kStepsDone;
  const RunResult result = Result();
  EXPECT_EQ(result.status, RunStatus::kOk);
  EXPECT_FALSE(result.evidence.contains(trainers::kUnitEvidence));
  EXPECT_TRUE(result.evidence.contains("hung"));
}

TEST_F(Classified, AFailureTheTrainerExplainsKeepsItsWords) {
  Wrote(RunStatus::kOomHost);
  end_.own->message = "the slab needs 5 GB";
  end_.own->evidence["wanted_bytes"] = "5000000000";
  end_.watched.status.exit_code = 11;
  const RunResult result = Result();
  EXPECT_EQ(result.status, RunStatus::kOomHost);
  EXPECT_EQ(result.message, "the slab needs 5 GB");
  EXPECT_EQ(result.evidence.at("wanted_bytes"), "5000000000");
  EXPECT_EQ(result.evidence.at("exit_code"), "11");
  EXPECT_EQ(result.evidence.at("log_tail"), "last words");
}

TEST_F(Classified, AResultThatTheDiskCannotReadIsNotTheTrainers) {
  end_.own_problem = end_.storage_problem = "cannot read result.json: Input/output error";
  const RunResult result = Result();
  EXPECT_EQ(EndOf(result), InfrastructureReason::kStorage);
  EXPECT_THAT(result.message, HasSubstr("Input/output error"));
}

TEST_F(Classified, AThrottledGpuIsTheNodesWhereThePointRefusesThat) {
  Wrote(RunStatus::kOk);
  end_.own->gpu.throttled_share = 0.125;
  end_.own->gpu.clock_limits = {{"sw_thermal_slowdown", 4}, {"gpu_idle", 9}};
  EXPECT_EQ(EndOf(Result()), RunStatus::kOk) << "it does not say so";
  job_.points[0].spec.refuse_throttled = true;
  const RunResult result = Result();
  EXPECT_EQ(EndOf(result), InfrastructureReason::kNode);
  EXPECT_EQ(result.message, "its GPU was throttled in 12 % of the measured steps, by its heat");
  EXPECT_THAT(result.hint, HasSubstr("refuse_throttled"));
  EXPECT_EQ(result.evidence.at("gpu_throttled_share"), "0.125");
  EXPECT_EQ(result.evidence.at("log_tail"), "last words");
  EXPECT_EQ(result.gpu.throttled_share, 0.125);

  end_.own->gpu.clock_limits.clear();
  EXPECT_EQ(Result().message, "its GPU was throttled in 12 % of the measured steps") << "another trainer's";
  end_.own->gpu.throttled_share = 0.05;
  EXPECT_EQ(EndOf(Result()), RunStatus::kOk);
  end_.own->gpu.throttled_share.reset();
  EXPECT_EQ(EndOf(Result()), RunStatus::kOk) << "it was not looked at";
  end_.own->gpu.throttled_share = 1;
  Wrote(RunStatus::kDiverged);
  end_.watched.status.exit_code = 12;
  EXPECT_EQ(EndOf(Result()), RunStatus::kDiverged) << "slow or not";
}

TEST_F(Classified, OkFromATrainerThatThenFailedIsACrash) {
  Wrote(RunStatus::kOk);
  end_.watched.status.signal = SIGSEGV;
  const RunResult result = Result();
  EXPECT_EQ(result.status, RunStatus::kCrashed);
  EXPECT_THAT(result.message, HasSubstr("signal 11"));
  EXPECT_THAT(result.message, HasSubstr("its result says 'ok'"));
  EXPECT_EQ(result.evidence.at("result_status"), "ok");
  EXPECT_TRUE(result.loss.empty());
}

TEST_F(Classified, DoesNotBelieveWhatATrainerCannotKnow) {
  for (const RunEnd end :
       std::initializer_list<RunEnd>{RunStatus::kTimeout, InfrastructureReason::kImage, RunStatus::kCancelled,
                                     InfrastructureReason::kLost, RunStatus::kSkippedPredictedOom}) {
    Wrote(end);
    EXPECT_EQ(Result().status, RunStatus::kCrashed);
    EXPECT_THAT(Result().message, HasSubstr("not a trainer's to say"));
    EXPECT_THAT(Result().hint, HasSubstr("docs/trainer-contract.md"));
  }
}

TEST_F(Classified, TheResultOfAnotherPointIsNoResult) {
  Wrote(RunStatus::kOk);
  end_.own->point_id = "0123";
  EXPECT_EQ(Result().status, RunStatus::kCrashed);
  EXPECT_THAT(Result().message, HasSubstr("its result is of point 0123"));
  EXPECT_THAT(Result().hint, HasSubstr("docs/trainer-contract.md"));
  EXPECT_EQ(Result().point_id, job_.points[0].id);
}

TEST_F(Classified, WithoutAResultTheExitCodeSpeaks) {
  const std::pair<int, RunEnd> cases[] = {
      {0, RunStatus::kCrashed},
      {1, RunStatus::kCrashed},
      {2, RunStatus::kInvalid},
      {3, RunStatus::kCrashed},
      {10, RunStatus::kOomDevice},
      {11, RunStatus::kOomHost},
      {12, RunStatus::kDiverged},
      {13, InfrastructureReason::kPreempted},
      {14, InfrastructureReason::kStorage},
      {15, InfrastructureReason::kNode},
      {127, RunStatus::kCrashed},
  };
  for (const auto& [code, end] : cases) {
    end_.watched.status.exit_code = code;
    EXPECT_EQ(EndOf(Result()), end) << code;
    EXPECT_EQ(Result().evidence.at("exit_code"), std::to_string(code));
    EXPECT_THAT(Result().message, HasSubstr("exit code " + std::to_string(code)));
  }
}

TEST_F(Classified, SigkillIsOutOfMemoryOnlyWhereTheKernelCountedAKill) {
  end_.watched.status.signal = SIGKILL;
  end_.watched.killed = true;
  EXPECT_EQ(Result().status, RunStatus::kCrashed);
  end_.oom = {1, false};
  EXPECT_EQ(Result().status, RunStatus::kOomHost);
  EXPECT_THAT(Result().message, HasSubstr("killed it"));
  EXPECT_EQ(Result().evidence.at("oom_kill"), "1");
  EXPECT_EQ(Result().evidence.at("signal"), "9");
  end_.watched.status.signal = SIGTERM;
  end_.watched.killed = false;
  EXPECT_EQ(Result().status, RunStatus::kCrashed) << "others are counted there, too";
  EXPECT_EQ(Result().evidence.count("oom_kill"), 0U);
}

// Like a trainer whose worker was killed, and that only reports a failure.
TEST_F(Classified, AKillOfOurOwnIsOutOfMemoryWhoeverWasKilled) {
  end_.oom = {1, true};
  for (const int code : {0, 1, 3, 137}) {
    end_.watched.status.exit_code = code;
    EXPECT_EQ(Result().status, RunStatus::kOomHost) << code;
    EXPECT_THAT(Result().message, HasSubstr("killed a process of it"));
  }
  Wrote(RunStatus::kCrashed);
  end_.watched.status.exit_code = 3;
  end_.own->message = "a worker ended";
  EXPECT_EQ(Result().status, RunStatus::kOomHost);
  EXPECT_THAT(Result().message, HasSubstr("it said: a worker ended"));
  EXPECT_EQ(Result().evidence.at("result_status"), "crashed");
  end_.watched.stopped = StopReason::kTimeLimit;
  EXPECT_EQ(Result().status, RunStatus::kOomHost) << "it hung for want of the worker";
}

TEST_F(Classified, AKillOfOurOwnOutdoesNoOtherWord) {
  end_.oom = {1, true};
  Wrote(RunStatus::kOk);
  EXPECT_EQ(Result().status, RunStatus::kOk) << "what was killed was not needed";
  Wrote(RunStatus::kDiverged);
  end_.watched.status.exit_code = 12;
  EXPECT_EQ(Result().status, RunStatus::kDiverged);
  end_.own.reset();
  EXPECT_EQ(Result().status, RunStatus::kDiverged);
  end_.watched.stopped = StopReason::kTold;
  EXPECT_EQ(Result().status, RunStatus::kCancelled);
}

TEST_F(Classified, AFolderThatCannotBeWrittenIsWhyATrainerLeftNothing) {
  end_.storage_problem = "No space left on device";
  for (const int code : {0, 1, 3}) {
    end_.watched.status.exit_code = code;
    EXPECT_EQ(EndOf(Result()), InfrastructureReason::kStorage) << code;
    EXPECT_THAT(Result().message, HasSubstr("No space left on device"));
  }
  end_.watched.status.exit_code = 12;
  EXPECT_EQ(Result().status, RunStatus::kDiverged) << "the trainer knows better";
}

TEST_F(Classified, ARankWhoseStorageFailedIsNotTheCrashThatOthersSawOfIt) {
  Wrote(RunStatus::kCrashed);
  end_.own->message = "rank 1 closed the connection";
  end_.watched.status.exit_code = 14;
  EXPECT_EQ(EndOf(Result()), InfrastructureReason::kStorage);
  EXPECT_THAT(Result().message, HasSubstr("rank 1 closed the connection"));
}

TEST_F(Classified, ARankWhoseGpuFailedIsNotTheCrashThatOthersSawOfIt) {
  Wrote(RunStatus::kCrashed);
  end_.own->message = "rank 1 ended: cudaStreamSynchronize: uncorrectable ECC error encountered";
  end_.watched.status.exit_code = 15;
  EXPECT_EQ(EndOf(Result()), InfrastructureReason::kNode);
  EXPECT_THAT(Result().message, HasSubstr("uncorrectable ECC error"));
}

TEST_F(Classified, RanksThatHadNotMetDidNotCrash) {
  end_.watched.began = false;
  Wrote(RunStatus::kCrashed);
  end_.own->message = "rank 2 of 4 did not come within 300 s";
  end_.watched.status.exit_code = 3;
  EXPECT_EQ(EndOf(Result()), InfrastructureReason::kStart);
  EXPECT_THAT(Result().message, HasSubstr("rank 2 of 4 did not come"));
  end_.watched.status = {0, SIGSEGV, 0};
  EXPECT_EQ(Result().status, RunStatus::kCrashed) << "a signal is the process's own";
  Wrote(RunStatus::kInvalid);
  end_.watched.status = {2, 0, 0};
  EXPECT_EQ(Result().status, RunStatus::kInvalid);
}

TEST_F(Classified, WhenWeEndedItOurReasonIsTheEnd) {
  Wrote(InfrastructureReason::kPreempted);
  end_.watched.status.exit_code = 13;
  end_.watched.stopped = StopReason::kTimeLimit;
  EXPECT_EQ(Result().status, RunStatus::kTimeout);
  EXPECT_THAT(Result().message, HasSubstr("60 s"));
  end_.watched.stopped = StopReason::kTold;
  EXPECT_EQ(Result().status, RunStatus::kCancelled);
  end_.watched.stopped = StopReason::kMemoryLimit;
  end_.watched.rss_bytes = 4'100'000'000;
  EXPECT_EQ(Result().status, RunStatus::kOomHost);
  EXPECT_THAT(Result().message, HasSubstr("4.10 GB"));
  EXPECT_THAT(Result().message, HasSubstr("4.00 GB"));
  EXPECT_EQ(Result().evidence.at("rss_bytes"), "4100000000");
}

TEST_F(Classified, ToldToLeaveATrainerSaysHowItDid) {
  end_.watched.stopped = StopReason::kPreempted;
  Wrote(InfrastructureReason::kPreempted);
  end_.own->message = "told to leave after step 3 of 9";
  end_.watched.status.exit_code = 13;
  EXPECT_EQ(Result().reason, InfrastructureReason::kPreempted);
  EXPECT_EQ(Result().message, "told to leave after step 3 of 9");
  EXPECT_EQ(Result().loss, std::vector<double>{1.5});
  Wrote(RunStatus::kCrashed);  // a trainer that took the signal for a crash
  EXPECT_EQ(Result().reason, InfrastructureReason::kPreempted);
  EXPECT_EQ(Result().evidence.at("result_status"), "crashed");
  end_.own.reset();  // a trainer that just ended
  end_.watched.status = {0, SIGTERM, 0};
  EXPECT_EQ(Result().reason, InfrastructureReason::kPreempted);
  EXPECT_THAT(Result().message, HasSubstr("signal 15"));
}

TEST_F(Classified, APointThatFinishedAsItWasStoppedHasFinished) {
  Wrote(RunStatus::kOk);
  end_.watched.status.signal = SIGTERM;
  end_.watched.stopped = StopReason::kTimeLimit;
  EXPECT_EQ(Result().status, RunStatus::kOk);
}

TEST_F(Classified, ThePlanOnlyDeviceHasNoResidentMemory) {
  Wrote(RunStatus::kOk);
  job_.points[0].spec.device = "meta";
  EXPECT_EQ(Result().memory.rss_peak_bytes, 0);
}

TEST(NextLook, IsSoonerTheNearerTheLimit) {
  EXPECT_EQ(NextLookNs(INT64_MAX / 2), 100'000'000);
  EXPECT_EQ(NextLookNs(160'000'000), 10'000'000);
  EXPECT_EQ(NextLookNs(0), 1'000'000);
}

}  // namespace
}  // namespace ridgeline::node
