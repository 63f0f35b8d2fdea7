// Of nodes that share no folder one fails in a point, and nobody there ends the others.
#include "run/result.h"
#include "tests/collect/collect_fixture.h"
#include "trainers/node_part.h"

namespace ridgeline {
namespace {

using State = JobRecord::State;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000;

class CollectBrokenGang : public CollectTest {
 protected:
  CollectBrokenGang() : job_(Submit("rl-1", {points_[0]})) { job_.started_unix_ns = 900 * kSecond; }

  NodePart Part(int64_t node, const RunEnd& end, int weight, int64_t ended_s) const {
    NodePart part;
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
  void Tell(const NodePart& part) const {
    const RunSpec spec = points_[0].spec;
    const std::string payload = EncodePart(nullptr, part, kMaxPartBytes, part.node == 0 ? &spec : nullptr);
    std::ofstream(PartsFile(job_.job_dir), std::ios::app)
        << FormatJobLine({std::string(kPartLine), points_[0].id, payload});
  }
  std::string FailedPart() {
    const JobToCollect live{job_, State::kRunning, {}, &results_};
    EXPECT_THAT(Collect(store_, {&live, 1}, 1), IsEmpty());
    return results_.failed_part;
  }
  std::vector<Collected> EndGang() { return End(job_, {{"gang_ended", "n2 failed"}, {"pod", "rl-1-0"}}); }

  JobRecord job_;
  JobResults results_;
};

TEST_F(CollectBrokenGang, ANodeThatFailsIsKnownWhileTheOthersGoOn) {
  EXPECT_EQ(FailedPart(), "");
  Tell(Part(1, RunStatus::kOk, weight::kCause, 950));
  Tell(Part(3, InfrastructureReason::kPreempted, weight::kStopped, 950));
  EXPECT_EQ(FailedPart(), "") << "who is told to leave has not failed";
  Tell(Part(2, RunStatus::kOomDevice, weight::kCause, 950));
  EXPECT_EQ(FailedPart(), "oom_device: n2 (node 2 of 4): because");
}

TEST_F(CollectBrokenGang, OfAnEarlierAttemptItDoesNotCount) {
  job_.started_unix_ns = 5000 * kSecond;
  Tell(Part(2, RunStatus::kOomDevice, weight::kCause, 950));
  EXPECT_EQ(FailedPart(), "");
}

TEST_F(CollectBrokenGang, TheFirstThatExplainsIsTheResultHoweverTheOthersWereEnded) {
  Tell(Part(1, RunStatus::kCrashed, weight::kCodeAlone, 940));
  Tell(Part(3, RunStatus::kOomDevice, weight::kCause, 960));
  Tell(Part(2, RunStatus::kOomDevice, weight::kCause, 950));
  EXPECT_EQ(FailedPart(), "oom_device: n2 (node 2 of 4): because");
  NodePart first = Part(0, InfrastructureReason::kPreempted, weight::kStopped, 1010);
  Tell(first);
  RunResult result = first.end;
  result.evidence[kAwaitsNodesEvidence] = EndName(EndOf(result));
  WriteResult(job_, result);
  EXPECT_THAT(EndGang(), SizeIs(1));
  EXPECT_EQ(Of(0, "status"), Cell("oom_device"));
  EXPECT_EQ(Of(0, "message"), Cell("n2 (node 2 of 4): because"));
  EXPECT_EQ(Of(0, "evidence ->> '$.log_tail'"), Cell("the log of n2"));
}

TEST_F(CollectBrokenGang, WhoseFirstNodeSaidNothingIsAResultAllTheSame) {
  Tell(Part(2, RunStatus::kOomDevice, weight::kCause, 950));
  EXPECT_THAT(EndGang(), SizeIs(1));
  EXPECT_EQ(Of(0, "status"), Cell("oom_device"));
  EXPECT_EQ(Of(0, "evidence ->> '$.node'"), Cell("n2"));
  EXPECT_EQ(Of(0, "evidence ->> '$.log_tail'"), Cell("the log of n2"));
}

TEST_F(CollectBrokenGang, WhatAPersonEndedIsNoBrokenGang) {
  Tell(Part(2, RunStatus::kOomDevice, weight::kCause, 950));
  EXPECT_EQ(End(job_, {{"end", "cancelled"}}).at(0).end, RunEnd(RunStatus::kCancelled));
}

}  // namespace
}  // namespace ridgeline
