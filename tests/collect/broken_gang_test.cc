// Nodes that share no folder: one fails in a point, and nothing on them ends the others.
#include <tuple>

#include "run/result.h"
#include "tests/collect/collect_fixture.h"
#include "trainers/node_part.h"

namespace ridgeline::collect {
namespace {

using State = store::JobRecord::State;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000;

class CollectBrokenGang : public CollectTest {
 protected:
  CollectBrokenGang() : job_(Submit("rl-1", {points_[0]})) { job_.started_unix_ns = 900 * kSecond; }

  trainers::NodePart Part(int64_t node, const RunEnd& end, int weight, int64_t ended_s) const {
    trainers::NodePart part;
    part.node = node;
    part.name = "n" + std::to_string(node);
    part.weight = weight;
    part.end = samples::Result(points_[0].id);
    SetEnd(end, part.end);
    part.end.message = "because";
    part.end.evidence = {{kNodesEvidence, "4"}, {"log_tail", "the log of " + part.name}};
    part.end.started_unix_ns = 900 * kSecond;
    part.end.ended_unix_ns = ended_s * kSecond;
    return part;
  }
  void Tell(const trainers::NodePart& part) const {
    const RunSpec spec = points_[0].spec;
    const std::string payload = trainers::EncodePart(nullptr, part, kMaxPartBytes, part.node == 0 ? &spec : nullptr);
    std::ofstream(PartsFile(job_.job_dir), std::ios::app)
        << FormatJobLine({std::string(kPartLine), points_[0].id, payload});
  }
  std::string FailedPart() {
    const JobToCollect live{job_, State::kRunning, {}, &results_};
    EXPECT_THAT(Collect(store_, {&live, 1}, 1), IsEmpty());
    return results_.failed_part;
  }
  std::vector<Collected> EndGang() { return End(job_, {{"gang_ended", "n2 failed"}, {"pod", "rl-1-0"}}); }

  store::JobRecord job_;
  JobResults results_;
};

TEST_F(CollectBrokenGang, ANodeThatFailsIsKnownWhileTheOthersGoOn) {
  EXPECT_EQ(FailedPart(), "");
  Tell(Part(1, RunStatus::kOk, trainers::weight::kCause, 950));
  Tell(Part(3, InfrastructureReason::kPreempted, trainers::weight::kStopped, 950));
  EXPECT_EQ(FailedPart(), "") << "who is told to leave has not failed";
  Tell(Part(2, RunStatus::kOomDevice, trainers::weight::kCause, 950));
  EXPECT_EQ(FailedPart(), "oom_device: n2 (node 2 of 4): because");
}

TEST_F(CollectBrokenGang, PartsOfAnEarlierAttemptDoNotCount) {
  job_.started_unix_ns = 5000 * kSecond;
  Tell(Part(2, RunStatus::kOomDevice, trainers::weight::kCause, 950));
  EXPECT_EQ(FailedPart(), "");
}

TEST_F(CollectBrokenGang, TheFirstThatExplainsIsTheResultHoweverTheOthersWereEnded) {
  Tell(Part(1, RunStatus::kCrashed, trainers::weight::kCodeAlone, 940));
  Tell(Part(3, RunStatus::kOomDevice, trainers::weight::kCause, 960));
  Tell(Part(2, RunStatus::kOomDevice, trainers::weight::kCause, 950));
  EXPECT_EQ(FailedPart(), "oom_device: n2 (node 2 of 4): because");
  trainers::NodePart first = Part(0, InfrastructureReason::kPreempted, trainers::weight::kStopped, 1010);
  Tell(first);
  RunResult result = first.end;
  result.evidence[trainers::kAwaitsNodesEvidence] = EndName(EndOf(result));
  WriteResult(job_, result);
  EXPECT_THAT(EndGang(), SizeIs(1));
  EXPECT_EQ(Of(0, "status"), Cell("oom_device"));
  EXPECT_EQ(Of(0, "message"), Cell("n2 (node 2 of 4): because"));
  EXPECT_EQ(Of(0, "evidence ->> '$.log_tail'"), Cell("the log of n2"));
}

TEST_F(CollectBrokenGang, IsAResultEvenIfItsFirstNodeReportedNothing) {
  Tell(Part(2, RunStatus::kOomDevice, trainers::weight::kCause, 950));
  EXPECT_THAT(EndGang(), SizeIs(1));
  EXPECT_EQ(Of(0, "status"), Cell("oom_device"));
  EXPECT_EQ(Of(0, "evidence ->> '$.node'"), Cell("n2"));
  EXPECT_EQ(Of(0, "evidence ->> '$.log_tail'"), Cell("the log of n2"));
}

// Its first node has ended well, but reports only its half of the result.
class CollectHungGang : public CollectBrokenGang {
 protected:
  CollectHungGang() {
    const trainers::NodePart first = Part(0, RunStatus::kOk, trainers::weight::kCause, 950);
    Tell(first);
    RunResult result = first.end;
    result.message.clear();
    result.evidence[trainers::kAwaitsNodesEvidence] = EndName(EndOf(result));
    WriteResult(job_, result);
  }
  std::string Awaiting() { return FailedPart(), results_.awaiting; }
};

TEST_F(CollectHungGang, APointThatAwaitsNodesIsKnown) {
  EXPECT_EQ(Awaiting(), points_[0].id);
  for (const int node : {1, 2, 3}) Tell(Part(node, RunStatus::kOk, trainers::weight::kCause, 950));
  const JobToCollect live{job_, State::kRunning, {}, &results_};
  EXPECT_THAT(Collect(store_, {&live, 1}, 1), SizeIs(1));
  EXPECT_EQ(results_.awaiting, "");
}

TEST_F(CollectHungGang, ANodeThatReportsNothingHung) {
  for (const int node : {1, 3}) Tell(Part(node, RunStatus::kOk, trainers::weight::kCause, 950));
  EXPECT_EQ(EndGang().at(0).end, InfrastructureReason::kNode);
  EXPECT_THAT(std::get<std::string>(Of(0, "message")), HasSubstr("another is gone, or hangs"));
}

TEST_F(CollectHungGang, ANodeThatReportsThatItWasToldToLeaveIsNamed) {
  for (const int node : {1, 3}) Tell(Part(node, RunStatus::kOk, trainers::weight::kCause, 950));
  Tell(Part(2, InfrastructureReason::kPreempted, trainers::weight::kStopped, 1600));
  EXPECT_EQ(EndGang().at(0).end, InfrastructureReason::kNode);
  EXPECT_THAT(std::get<std::string>(Of(0, "message")), HasSubstr("n2 is gone, or hangs"));
}

TEST_F(CollectHungGang, ANodeThatEndsWellAtTheLastMomentCounts) {
  for (const int node : {1, 2, 3}) Tell(Part(node, RunStatus::kOk, trainers::weight::kCause, 1600));
  EXPECT_EQ(EndGang().at(0).end, RunEnd(RunStatus::kOk));
}

TEST_F(CollectHungGang, HalfTheNodesMakeNoResultOfAJobThatDidNotEndWell) {
  const std::tuple<std::map<std::string, std::string>, State, RunEnd> cases[] = {
      {{{"end", "infrastructure"}, {"reason", "node"}}, State::kEnded, InfrastructureReason::kNode},
      {{{"end", "infrastructure"}, {"reason", "lost"}}, State::kEnded, InfrastructureReason::kLost},
      {{{"end", "timeout"}}, State::kEnded, RunStatus::kTimeout},
      {{{"end", "oom_host"}}, State::kEnded, RunStatus::kOomHost},
      {{}, State::kCancelled, RunStatus::kCancelled},
  };
  EndGang();
  RunResult result = Part(0, RunStatus::kOk, trainers::weight::kCause, 950).end;
  result.message.clear();
  result.evidence[trainers::kAwaitsNodesEvidence] = EndName(EndOf(result));
  for (const auto& [evidence, state, end] : cases) {
    job_ = Submit("rl-" + EndName(end), {points_[0]});
    Tell(Part(0, RunStatus::kOk, trainers::weight::kCause, 950));
    WriteResult(job_, result);
    EXPECT_EQ(End(job_, evidence, state).at(0).end, end);
    EXPECT_THAT(std::get<std::string>(Of(0, "message")), HasSubstr("on its first node it was ok"));
  }
}

TEST_F(CollectBrokenGang, AGangThatAPersonEndedIsNotBroken) {
  Tell(Part(2, RunStatus::kOomDevice, trainers::weight::kCause, 950));
  EXPECT_EQ(End(job_, {{"end", "cancelled"}}).at(0).end, RunEnd(RunStatus::kCancelled));
}

}  // namespace
}  // namespace ridgeline::collect
