// What a node sees of a point on several nodes when another node is lost, and what the end of the job makes of that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "tests/collect/collect_fixture.h"

namespace ridgeline::collect {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using State = store::JobRecord::State;
using CollectLostNode = CollectTest;

// A point on two nodes, as the first of them saw it.
RunResult OnTwoNodes(const Point& point, const RunEnd& end) {
  RunResult result = samples::Result(point.id, end);
  result.evidence["nodes"] = "2";
  if (end.status == RunStatus::kCrashed) result.message = "rank 1 on n2 closed the connection";
  return result;
}

TEST_F(CollectLostNode, IfANodeIsLostItCausedTheCrashThatAnotherSaw) {
  const store::JobRecord job = Submit("rl-1", {points_[0], points_[1], points_[2]});
  WriteResult(job, OnTwoNodes(points_[0], RunStatus::kCrashed));
  WriteResult(job, OnTwoNodes(points_[1], RunStatus::kTimeout));
  WriteResult(job, OnTwoNodes(points_[2], RunStatus::kDiverged));
  EXPECT_THAT(End(job, {}, State::kRunning), SizeIs(1)) << "what its loss did is no node's doing";
  const auto ends = End(Live("rl-1"), {{"end", "infrastructure"},
                                       {"reason", "node"},
                                       {"message", "node n2 went away"},
                                       {"hint", "see to it"},
                                       {"node", "n2"}});
  EXPECT_THAT(ends, SizeIs(2));
  for (const Collected& end : ends) {
    EXPECT_EQ(end.end, InfrastructureReason::kNode);
    EXPECT_EQ(end.node, "n2");
  }
  EXPECT_EQ(Of(0, "message"),
            Cell("node n2 went away; on its first node it was crashed: rank 1 on n2 closed the connection"));
  EXPECT_EQ(Of(0, "hint"), Cell("see to it"));
  EXPECT_EQ(store_.FinishedPoints("s").size(), 1U) << "the others are measured again";
}

TEST_F(CollectLostNode, ACrashOnSeveralNodesIsWhatTheirJobEndedOfWhereThatIsNoTrainersDoing) {
  const std::tuple<std::map<std::string, std::string>, State, const char*> cases[] = {
      {{}, State::kEnded, "crashed"},
      {{}, State::kLost, "crashed"},
      {{}, State::kCancelled, "cancelled"},
      {{{"end", "cancelled"}}, State::kEnded, "cancelled"},
      {{{"end", "infrastructure"}, {"reason", "preempted"}}, State::kEnded, "infrastructure preempted"},
      {{{"end", "infrastructure"}, {"reason", "preempted"}}, State::kCancelled, "cancelled"},
      {{{"end", "infrastructure"}, {"reason", "lost"}}, State::kEnded, "crashed"},  // nothing more is known
      {{{"end", "timeout"}}, State::kEnded, "crashed"},  // it would stand, and may concern another point
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    const auto& [evidence, state, want] = cases[i];
    const store::JobRecord job = Submit("rl-" + std::to_string(i), {points_[0]});
    WriteResult(job, OnTwoNodes(points_[0], RunStatus::kCrashed));
    EXPECT_THAT(End(job, evidence, state), SizeIs(1));
    EXPECT_EQ(Of(0, "rtrim(status || ' ' || reason)"), Cell(want)) << i;
    EXPECT_THAT(std::get<std::string>(Of(0, "message")), HasSubstr("rank 1 on n2 closed the connection"));
  }
  // On a single node only the trainer can have crashed.
  const store::JobRecord job = Submit("rl-one", {points_[1]});
  WriteResult(job, samples::Result(points_[1].id, RunStatus::kCrashed));
  EXPECT_THAT(End(job, {{"end", "infrastructure"}, {"reason", "node"}}), SizeIs(1));
  EXPECT_EQ(Of(1, "status"), Cell("crashed"));
}

TEST_F(CollectLostNode, ACrashAfterWhichAllNodesDidWellIsTheTrainers) {
  const store::JobRecord job = Submit("rl-1", points_);
  WriteResult(job, OnTwoNodes(points_[0], RunStatus::kCrashed));
  WriteResult(job, samples::Result(points_[1].id));  // on the first node alone
  JobResults results;
  const auto look = [&](State state, std::map<std::string, std::string> evidence = {}) {
    const JobToCollect from{Live("rl-1"), state, std::move(evidence), &results};
    return Collect(store_, {&from, 1}, 1).size();
  };
  EXPECT_EQ(look(State::kRunning), 1U);
  WriteResult(job, OnTwoNodes(points_[2], RunStatus::kOk));
  EXPECT_EQ(look(State::kRunning), 2U);
  EXPECT_EQ(Of(0, "status"), Cell("crashed"));
  WriteResult(job, OnTwoNodes(points_[3], RunStatus::kCrashed));
  EXPECT_EQ(look(State::kRunning), 0U);
  EXPECT_EQ(look(State::kEnded, {{"end", "infrastructure"}, {"reason", "node"}}), 2U);
  EXPECT_EQ(Of(0, "status"), Cell("crashed"));
  EXPECT_EQ(Of(3, "reason"), Cell("node"));
  EXPECT_THAT(store_.Check(), IsEmpty());
}

}  // namespace
}  // namespace ridgeline::collect
