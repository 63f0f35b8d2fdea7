// Points of defined trainers on several nodes. Two execs on one machine stand for two nodes, and a shell script for
// torchrun, which starts once on each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/port.h"
#include "node/node_reports.h"
#include "tests/node/exec_fixture.h"
#include "trainers/node_part.h"

namespace ridgeline::node {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::Eventually;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ResultOf;

constexpr const char* kDefinition = R"(name: mine
about: one line
version: "1.0"
tested: log
result: patterns
command: [{}, '{{{{node_rank}}}}', '{{{{output_dir}}}}/..', '{{{{env.NEEDED | default: nothing}}}}']
processes: {}
metrics:
  - {{name: step_time, regex: 'step (?P<step>\d+): (?P<value>\S+) ms', unit: ms, take: series}}
  - {{name: loss, regex: 'step (?P<step>\d+): .* loss (?P<value>\S+)', take: series}}
  - {{name: device_peak, regex: 'memory (\S+) MB', unit: MB, take: max}}
  - {{name: version, regex: 'mine (\S+)'}}
)";
// As only the last rank prints it.
constexpr const char* kSteps =
    "echo memory 7 MB; for i in 1 2 3 4; do echo \"step $i: $((100 - i)) ms loss $i\"; done\n";
constexpr const char* kFirst = "echo mine 2.1; echo memory 5 MB\n";
constexpr const char* kTraceback =
    "echo 'Traceback (most recent call last):'; echo '  File \"x.py\", line 1, in f'; echo 'ValueError: bad shard'\n";

class ExecNodesOfOthers : public Exec {
 protected:
  // The script of each node. It knows the point's folder as $dir.
  Job MakeNodes(const std::string& first, const std::string& other, const std::string& processes = "torchrun") {
    const std::filesystem::path file = dir_.path() / "mine.sh";
    WriteFile(file,
              fmt::format("#!/bin/sh\ndir=$2\nended() {{ until grep -q '^ridgeline: part' \"$dir/$1\" 2>&1; do sleep "
                          "0.05; done; }}\nif [ \"${{RANK:-$1}}\" = 0 ]; then\n{}\nelse\n{}\nfi\n",
                          first, other));
    ::chmod(file.c_str(), 0755);
    Job job = MakeJob({});
    std::vector<Problem> problems;
    const RunSpec spec = BuildSpec({{"model", "llama-10m"},
                                    {"batch_size", 10},
                                    {"seq_length", 100},
                                    {"warmup_steps", 1},
                                    {"steps", 3},
                                    {"measure.min_steps", 3},
                                    {"ranks", 2},
                                    {"trainer", "mine"}},
                                   problems);
    for (const Problem& problem : problems) ADD_FAILURE() << problem.message;
    job.points = {{PointId(spec), spec, 0}};
    job.trainer.clear();
    job.definition = fmt::format(kDefinition, file.string(), processes);
    testing::WriteJob(job);
    return job;
  }

  Child StartNode(const Job& job, int node, std::map<std::string, std::string> more = {}) {
    more.insert({{"RIDGELINE_NNODES", "2"},
                 {"RIDGELINE_NODE_RANK", std::to_string(node)},
                 {"RIDGELINE_NODE", "n" + std::to_string(node)},
                 {"MASTER_ADDR", "127.0.0.1"},
                 {"MASTER_PORT", std::to_string(port_.number())}});
    return Start(job, 500, more);
  }
  RunResult RunBoth(const Job& job) {
    std::vector<Child> nodes;
    for (const int node : {1, 0}) nodes.push_back(StartNode(job, node));
    for (Child& node : nodes) EXPECT_EQ(node.Wait().exit_code, 0) << Log();
    EXPECT_TRUE(NothingIsLeft());
    return ResultOf(job);
  }
  void ExpectWhole(const RunResult& result) {
    EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
    EXPECT_THAT(result.step_ns.all_ns, ElementsAre(99'000'000, 98'000'000, 97'000'000, 96'000'000));
    EXPECT_THAT(result.loss, ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(result.environment.at("version"), "2.1");
    EXPECT_EQ(result.memory.device_peak_bytes, 7'000'000);
    EXPECT_GT(result.memory.rss_peak_bytes, 0);
    EXPECT_FALSE(result.evidence.contains(trainers::kMissingPartsEvidence));
    EXPECT_FALSE(trainers::AwaitsNodes(result));
  }

  ReservedPort port_;
};

TEST_F(ExecNodesOfOthers, FiguresOfTheLastNodeCountWhoeverEndsFirst) {
  const std::string waits = "ended part.txt\n";
  const std::string waits_for_other = "ended part.node1.txt\n";
  struct Order {
    std::string first, other;
  };
  const std::vector<Order> orders = {
      {kFirst, std::string("echo step 0; ") + waits + kSteps},  // half of its log exists when node 0 ends
      {waits_for_other + kFirst, kSteps},
      {kFirst, kSteps},
  };
  for (const Order& order : orders) {
    SCOPED_TRACE(order.first + order.other);
    const Job job = MakeNodes(order.first, order.other);
    ExpectWhole(RunBoth(job));
    EXPECT_FALSE(IsThere(DirOf(job))) << "what nobody needs any more";
    std::filesystem::remove_all(job.job_dir);
  }
}

TEST_F(ExecNodesOfOthers, ANodeThatHasEndedBeforeTheFirstBeginsIsHeard) {
  const Job job = MakeNodes(kFirst, kSteps);
  for (const int node : {1, 0}) EXPECT_EQ(StartNode(job, node).Wait().exit_code, 0) << Log();
  ExpectWhole(ResultOf(job));
  EXPECT_FALSE(IsThere(DirOf(job)));
}

TEST_F(ExecNodesOfOthers, ANodeThatComesLateIsWaitedFor) {
  const Job job = MakeNodes(kFirst, kSteps);
  Child first = StartNode(job, 0);
  ASSERT_TRUE(Eventually([&] {
    return ReadFileIfThere(DirOf(job) / "part.txt").value_or("").starts_with("ridgeline: part");
  })) << Log();
  Child other = StartNode(job, 1);
  for (Child* node : {&first, &other}) EXPECT_EQ(node->Wait().exit_code, 0) << Log();
  ExpectWhole(ResultOf(job));
}

TEST_F(ExecNodesOfOthers, FiguresOfTheLastNodeCountAlsoForRanksThatWeStart) {
  ExpectWhole(RunBoth(MakeNodes(kFirst, kSteps, "ours")));
}

TEST_F(ExecNodesOfOthers, ForACommandThatStartsOnceTheFirstNodesReportIsWhole) {
  ExpectWhole(RunBoth(MakeNodes(std::string(kFirst) + kSteps, "exit 1", "one")));
}

TEST_F(ExecNodesOfOthers, TheCauseOnAnotherNodeDecides) {
  // Node 0 waits for it without success, and is ended.
  const Job job =
      MakeNodes("echo mine 2.1; sleep 600", std::string("echo 'step 1: 99 ms loss 1'\n") + kTraceback + "exit 1");
  const RunResult result = RunBoth(job);
  EXPECT_EQ(result.status, RunStatus::kCrashed);
  EXPECT_THAT(result.message, AllOf(HasSubstr("n1 (node 1 of 2, rank 1)"), HasSubstr("ValueError: bad shard")));
  EXPECT_EQ(result.evidence.at("node"), "n1");
  EXPECT_EQ(result.evidence.at("rank"), "1");
  EXPECT_EQ(result.evidence.at("exit_code"), "1");
  EXPECT_THAT(result.evidence.at("log_tail"), HasSubstr("bad shard"));
  EXPECT_EQ(result.environment.at("version"), "2.1") << "what is known stays";
  for (const char* log : {"log.txt", "log.1.txt"}) EXPECT_TRUE(IsThere(DirOf(job) / log)) << log;
  EXPECT_FALSE(IsThere(DirOf(job) / "part.node1.txt"));
}

TEST_F(ExecNodesOfOthers, ANodeThatIsOnlyToldDoesNotDecide) {
  const std::string oom = "echo 'torch.OutOfMemoryError: CUDA out of memory.'; exit 1";
  // The notified processes end before the cause, after it, and with it.
  for (const char* told : {"exit 1", "ended part.node1.txt; exit 1", "kill -TERM $$"}) {
    SCOPED_TRACE(told);
    const Job job = MakeNodes(told, oom);
    const RunResult result = RunBoth(job);
    EXPECT_EQ(result.status, RunStatus::kOomDevice) << result.message;
    EXPECT_THAT(result.message, HasSubstr("n1 "));
    EXPECT_FALSE(result.evidence.at("first_node_said").empty());
    std::filesystem::remove_all(job.job_dir);
  }
  const RunResult own = RunBoth(MakeNodes(oom, "exit 1"));
  EXPECT_EQ(own.status, RunStatus::kOomDevice);
  EXPECT_THAT(own.message, Not(HasSubstr("node 0")));
}

TEST_F(ExecNodesOfOthers, AKillOnAnotherNodeIsTheCause) {
  const RunResult result = RunBoth(MakeNodes("exit 1", "kill -KILL $$"));
  EXPECT_EQ(result.status, RunStatus::kCrashed);
  EXPECT_THAT(result.message, AllOf(HasSubstr("n1 (node 1 of 2"), HasSubstr("signal 9")));
  EXPECT_EQ(result.evidence.at("signal"), "9");
}

TEST_F(ExecNodesOfOthers, ANodeThatIsGoneIsTheInfrastructures) {
  const Job job =
      MakeNodes("until [ -e \"$dir/../gone\" ]; do sleep 0.05; done; exit 1", "touch \"$dir/../here\"; sleep 600");
  std::vector<Child> nodes;
  for (const int node : {0, 1}) nodes.push_back(StartNode(job, node));
  ASSERT_TRUE(Eventually([&] { return IsThere(job.job_dir / "points/here"); })) << Log();
  nodes[1].Signal(SIGKILL);
  nodes[1].Wait();
  WriteFile(job.job_dir / "points/gone", "");
  EXPECT_EQ(nodes[0].Wait().exit_code, 0) << Log();
  const RunResult result = ResultOf(job);
  EXPECT_EQ(EndOf(result), InfrastructureReason::kNode) << result.message;
  EXPECT_THAT(result.message, HasSubstr("n1 is gone, or hangs"));
  EXPECT_EQ(result.evidence.at("node"), "n1");
}

TEST_F(ExecNodesOfOthers, ANodeThatCanRunNoneOfItsPointsSaysWhy) {
  Job job = MakeNodes("sleep 600", "sleep 600");
  job.definition.replace(job.definition.find(" | default: nothing"), 19, "");
  testing::WriteJob(job);
  Child first = StartNode(job, 0, {{"NEEDED", "x"}});
  Child other = StartNode(job, 1);
  EXPECT_EQ(other.Wait().exit_code, kExecCannotStart);
  EXPECT_EQ(first.Wait().exit_code, 0) << Log();
  const RunResult result = ResultOf(job);
  EXPECT_EQ(EndOf(result), InfrastructureReason::kStart) << result.message;
  EXPECT_THAT(result.message, AllOf(HasSubstr("n1 (node 1 of 2"), HasSubstr("NEEDED")));
}

TEST_F(ExecNodesOfOthers, ANodeThatMustLeaveWhileAnotherRunsIsPreempted) {
  const Job job = MakeNodes(kFirst, "sleep 600");
  std::vector<Child> nodes;
  for (const int node : {0, 1}) nodes.push_back(StartNode(job, node));
  ASSERT_TRUE(Eventually([&] {
    return IsThere(DirOf(job) / "part.node1.txt") &&
           ReadFileIfThere(DirOf(job) / "part.txt").value_or("").starts_with("ridgeline: part");
  })) << Log();
  for (Child& node : nodes) node.Signal(SIGTERM);
  for (Child& node : nodes) node.Wait();
  EXPECT_EQ(EndOf(ResultOf(job)), InfrastructureReason::kPreempted) << ResultOf(job).message;
}

// Nothing watches that would end the job.
TEST_F(ExecNodesOfOthers, ANodeThatHangsAfterTheFirstEndedWellEndsItself) {
  const Job job = MakeNodes(kFirst, "echo 'step 1: 99 ms loss 1'; sleep 600");
  others_end_ms_ = 1000;
  const RunResult result = RunBoth(job);
  EXPECT_EQ(EndOf(result), InfrastructureReason::kNode) << result.message;
  EXPECT_THAT(result.message, AllOf(HasSubstr("n1 (node 1 of 2, rank 1)"), HasSubstr("after rank 0 had ended well")));
  EXPECT_EQ(result.evidence.at("node"), "n1");
}

TEST_F(ExecNodesOfOthers, ARankThatHangsAfterTheFirstEndedWellIsEnded) {
  Job job = MakeNodes(kFirst, "echo 'step 1: 99 ms loss 1'; sleep 600", "ours");
  others_end_ms_ = 1000;
  EXPECT_EQ(Start(job, 500).Wait().exit_code, 0) << Log();
  EXPECT_EQ(EndOf(ResultOf(job)), InfrastructureReason::kNode) << ResultOf(job).message;
}

TEST_F(ExecNodesOfOthers, RanksThatNeverStartAreEndedButNotThoseThatCompute) {
  quiet_start_ms_ = 2000;
  for (const auto& [start, end] : {std::pair("sleep 600", RunEnd(InfrastructureReason::kStart)),
                                   std::pair("timeout 3 sh -c 'while :; do :; done'", RunEnd(RunStatus::kOk))}) {
    SCOPED_TRACE(start);
    const Job job = MakeNodes(std::string(start) + "\n" + kFirst, std::string(start) + "\n" + kSteps, "ours");
    EXPECT_EQ(Start(job, 500).Wait().exit_code, 0) << Log();
    EXPECT_EQ(EndOf(ResultOf(job)), end) << ResultOf(job).message;
    std::filesystem::remove_all(job.job_dir);
  }
}

TEST_F(ExecNodesOfOthers, IgnoresPartsOfAnEarlierAttempt) {
  const Job job = MakeNodes(kFirst, kSteps);
  trainers::NodePart part;
  part.node = 1;
  part.name = "n1";
  part.end.started_unix_ns = 1'000'000'000;
  part.end.ended_unix_ns = 2'000'000'000;
  MakeDirs(DirOf(job));
  const std::string& id = job.points[0].id;
  EndPart(DirOf(job), id, 1, trainers::EncodePart(nullptr, part));
  RunResult own;
  own.started_unix_ns = 90'000'000'000;
  own.ended_unix_ns = 91'000'000'000;
  const PartsWait wait{0, 0, false, [] { return false; }};
  EXPECT_TRUE(WaitForParts({job.job_dir, id, 2}, own, wait).ended.empty());
  own.started_unix_ns = 1'500'000'000;
  EXPECT_EQ(WaitForParts({job.job_dir, id, 2}, own, wait).ended.size(), 1U);
  ExpectWhole(RunBoth(job));
}

}  // namespace
}  // namespace ridgeline::node
