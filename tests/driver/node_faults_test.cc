// A driver and nodes on which jobs fail: which nodes it avoids, when it uses them again, and when it stops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "driver/driver.h"
#include "ridgeline/job_line.h"
#include "ridgeline/limits.h"
#include "tests/driver/world.h"
#include "trainers/node_part.h"

namespace ridgeline::driver {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

void EndOn(const std::string& node, FakeLauncher::Entry& entry) {
  entry.phase = launch::JobPhase::kEnded;
  entry.evidence = {{"end", "infrastructure"}, {"reason", "node"}, {"message", "no folder"}, {"node", node}};
}

// One of many nodes lacks the shared folder, and takes job after job because it is always free.
TEST(NodeFaults, ANodeThatFailsTwiceIsSetAsideAndNamed) {
  World world(12);
  world.launcher.max_jobs = 100;
  int failed = 0;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    const auto& avoid = entry.job.avoid;
    if (std::find(avoid.begin(), avoid.end(), "bad") == avoid.end() && failed < 2) {
      ++failed;
      EndOn("bad", entry);
    } else if (!avoid.empty()) {
      world.Finish(entry);
    }
  };
  EXPECT_EQ(world.Run().ok, 12);
  EXPECT_EQ(failed, 2);
  EXPECT_THAT(world.observer.notes,
              Contains(HasSubstr("bad is set aside, as long as others can take jobs: 2 jobs failed ")));
  EXPECT_THAT(world.launcher.cancelled, SizeIs(10)) << "what was in the queue would have gone to it, too";
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE evidence ->> 'node' = 'bad'"), 2);
  EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
  EXPECT_THAT(world.OpenStore().Check(), ::testing::IsEmpty());
}

// Kills a driver that withdraws ten queued jobs, just before or just after they are told. Another driver then runs.
void TakeJobsBackAndDie(World& world, bool before) {
  world.launcher.max_jobs = 100;
  int failed = 0;
  bool died = false;
  const auto die = [&] { throw(died = true, Killed()); };
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    if (failed < 2) {
      ++failed;
      EndOn("bad", entry);
    } else if (died && world.launcher.cancelled.size() == 10) {
      world.Finish(entry);
    }
  };
  world.launcher.on_cancel = [&] {
    if (before && !died) die();
  };
  world.step = [&] {
    if (!world.launcher.cancelled.empty() && !died) die();
  };
  EXPECT_THROW(world.Run(), Killed);
  EXPECT_EQ(world.launcher.cancelled.size(), before ? 0 : 10);
  EXPECT_EQ(world.Run().ok, 12);
  EXPECT_THAT(world.launcher.cancelled, SizeIs(10));
}

TEST(NodeFaults, AJobThatADriverWithdrewIsNotCancelledForTheNext) {
  for (const bool before : {true, false}) {
    World world(12);
    TakeJobsBackAndDie(world, before);
    EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE status = 'cancelled'"), 0);
    EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE reason = 'node' AND message LIKE '%: withdrawn%'"), 10);
    EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
  }
}

// Includes the failures on the way.
void ExpectEveryPointWasMeasuredInTheEnd(World& world, int points) {
  EXPECT_THAT(world.measured, SizeIs(points));
  EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE status = 'ok'"), points);
  EXPECT_THAT(world.OpenStore().Check(), ::testing::IsEmpty());
}

constexpr const char* kNoNode = "0/1 nodes are available: 1 node(s) were unschedulable.";

// A cluster with one node, which fails this many times.
void OneNodeThatFails(World& world, int failures) {
  world.launcher.max_jobs = 100;
  world.launcher.poll_pause_ns = 1'000'000'000;
  world.launcher.on_poll = [&world, failures, failed = 0](FakeLauncher::Entry& entry) mutable {
    if (!entry.job.avoid.empty()) {
      entry.evidence = {{"no_node", kNoNode}};
    } else if (failed < failures) {
      ++failed;
      EndOn("n1", entry);
    } else {
      entry.evidence.clear();
      world.Finish(entry);
    }
  };
}

TEST(NodeFaults, IfEveryNodeIsSetAsideTheLastOneIsUsedAgain) {
  World world(6);
  OneNodeThatFails(world, 2);
  const RunSummary summary = world.Run();
  EXPECT_EQ(summary.ok, 6);
  EXPECT_THAT(summary.set_aside, HasSubstr("n1, where 2 jobs failed, the last: "));
  EXPECT_THAT(world.observer.notes,
              Contains(std::string("n1 is used again, as no other node can take its jobs: ") + kNoNode));
  ExpectEveryPointWasMeasuredInTheEnd(world, 6);
}

TEST(NodeFaults, IfEveryNodeKeepsFailingTheRunEndsAndNothingIsLost) {
  World world(6);
  world.yaml += "launch: {retry: {node: 9}}\n";
  OneNodeThatFails(world, 1000);
  const RunSummary summary = world.Run();
  EXPECT_EQ(summary.no_result, 6);
  EXPECT_THAT(summary.given_up, HasSubstr("5 jobs in a row failed alike"));
  EXPECT_THAT(summary.set_aside, HasSubstr("n1, where 12 jobs failed, the last: "));
  EXPECT_EQ(world.Count("SELECT count(*) FROM jobs WHERE state IN ('intent', 'submitted', 'running')"), 0);
  OneNodeThatFails(world, 0);
  EXPECT_EQ(world.Run().ok, 6);
  ExpectEveryPointWasMeasuredInTheEnd(world, 6);
}

// A node may come back, or a cluster may add one when jobs wait.
TEST(NodeFaults, ANodeThatIsSetAsideStaysSoForAsLongAsALauncherIsBorneWith) {
  World world(2);
  world.yaml += "launch: {launcher_timeout: 10m}\n";
  OneNodeThatFails(world, 2);
  world.launcher.on_poll = [polls = 0, &world, first = world.launcher.on_poll](FakeLauncher::Entry& entry) mutable {
    if (entry.job.avoid.empty() || ++polls < 1000) return first(entry);  // at least 500 s for two jobs
    entry.evidence.clear();
    world.Finish(entry);
  };
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_THAT(world.observer.notes, Not(Contains(HasSubstr("is used again"))));
}

// A cluster whose nodes are all away until each job was polled this often.
void NoNodeFor(World& world, int polls, int64_t pause_ns) {
  world.launcher.max_jobs = 100;
  world.launcher.poll_pause_ns = pause_ns;
  world.launcher.on_poll = [&world, polls](FakeLauncher::Entry& entry) {
    entry.evidence = {{"no_node", kNoNode}};
    if (entry.polls < polls) return;
    entry.evidence.clear();
    world.Finish(entry);
  };
}

TEST(NodeFaults, AJobThatAlsoWaitsForSomethingElseKeepsWaiting) {
  World world(1);
  NoNodeFor(world, 100, 60'000'000'000);
  EXPECT_EQ(world.Run().ok, 1);
  EXPECT_THAT(world.launcher.cancelled, ::testing::IsEmpty());
}

// A run that set a node aside was killed. The next run does not know that, and adopts its jobs.
TEST(NodeFaults, JobsOfAnEarlierRunThatFindNoNodeAreHandedOverAnew) {
  World world(4);
  OneNodeThatFails(world, 2);
  world.interrupts = [&] {
    const auto waits = [](const auto& entry) { return entry.second.evidence.contains("no_node"); };
    const auto& jobs = world.launcher.jobs;
    return std::count_if(jobs.begin(), jobs.end(), waits) > 0 ? 2 : 0;  // leaves the jobs
  };
  EXPECT_TRUE(world.Run().left);
  world.interrupts = nullptr;
  world.yaml += "launch: {launcher_timeout: 100d}\n";
  EXPECT_EQ(world.Run().ok, 4);
  EXPECT_LT(world.Count("SELECT max(ended_unix_ns) - min(submitted_unix_ns) FROM jobs"), 900'000'000'000)
      << "what an earlier run had set aside is not waited for";
  EXPECT_THAT(world.observer.notes, Contains(HasSubstr("jobs of an earlier run find no node and are submitted again")));
  ExpectEveryPointWasMeasuredInTheEnd(world, 4);
}

// Before a maintenance window no node takes a job, and a job should keep its place in the queue.
TEST(NodeFaults, JobsOfAnEarlierRunThatMayGoToAnyNodeKeepTheirPlace) {
  World world(2);
  NoNodeFor(world, 300, 1'000'000'000);
  world.interrupts = [&] { return world.launcher.poll_calls > 3 ? 2 : 0; };
  EXPECT_TRUE(world.Run().left);
  world.interrupts = nullptr;
  world.yaml += "launch: {launcher_timeout: 10s}\n";
  EXPECT_EQ(world.Run().ok, 2);
  EXPECT_THAT(world.launcher.cancelled, ::testing::IsEmpty());
  EXPECT_EQ(world.launcher.jobs.size(), 2);
}

// For pods that share no folder: the first node's result of a point whose other node never ends.
void LeaveHalfAResult(World& world, const launch::LaunchJob& job) {
  for (const JobPoint& point : DecodeJob(ReadJsonFile(job.job_file), job.job_file.string()).points) {
    RunResult result;
    result.point_id = point.id;
    result.status = RunStatus::kOk;
    result.throughput.steady_tokens_per_s = 1234;
    result.evidence = {{kNodesEvidence, "2"}};
    trainers::NodePart part;
    part.end = result;
    result.evidence[trainers::kAwaitsNodesEvidence] = EndName(EndOf(result));
    ResultsWriter(job.job_dir).Append(result);
    WriteFile(PartsFile(job.job_dir), FormatJobLine({std::string(kPartLine), point.id,
                                                     trainers::EncodePart(nullptr, part, kMaxPartBytes, &point.spec)}));
    ++world.measured[point.id];
  }
}

TEST(NodeFaults, AGangThatHangsAfterItsFirstNodeEndedWellIsEndedAndRunAgain) {
  World world(1);
  world.launcher.max_jobs = 10;
  world.launcher.poll_pause_ns = 1'000'000'000;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    if (world.launcher.jobs.size() > 1) return world.Finish(entry);
    if (entry.phase != launch::JobPhase::kRunning) LeaveHalfAResult(world, entry.job);
    entry.phase = launch::JobPhase::kRunning;
  };
  EXPECT_EQ(world.Run().ok, 1);
  EXPECT_THAT(world.launcher.cancelled, SizeIs(1));
  EXPECT_THAT(world.observer.notes, Contains(HasSubstr("not ended 10 minutes after the first had ended well")));
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE status = 'infrastructure' AND reason = 'node' AND message "
                        "LIKE 'the first node has ended well; another is gone, or hangs%'"),
            1);
  EXPECT_EQ(world.Count("SELECT count(*) FROM results"), 2);
}

TEST(NodeFaults, FailuresThatAreAlikeStopTheSweepAndNothingIsLost) {
  World world(50);
  world.launcher.max_jobs = 20;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    static int jobs = 0;
    EndOn("n" + std::to_string(++jobs), entry);
  };
  const RunSummary summary = world.Run();
  EXPECT_EQ(summary.no_result, 50);
  EXPECT_THAT(summary.given_up, HasSubstr("5 jobs in a row failed alike, infrastructure (node): "));
  EXPECT_THAT(world.observer.notes, Contains(HasSubstr("no more jobs are handed over")));
  EXPECT_EQ(world.launcher.jobs.size(), 20) << "it burnt through the sweep";
  EXPECT_EQ(world.Count("SELECT count(*) FROM jobs WHERE state IN ('intent', 'submitted', 'running')"), 0);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry); };
  EXPECT_EQ(world.Run().ok, 50);
  EXPECT_THAT(world.measured, Each(Pair(::testing::_, 1)));
}

// For example if the trainer is not installed here. Two failures once set this machine aside, so the count never grew.
TEST(NodeFaults, ThisMachineIsNeverSetAside) {
  for (const char* reason : {"start", "node"}) {
    World world(9);
    world.yaml += "launch: {retry: {start: 0, node: 0}}\n";
    world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
      EndOn("here", entry);
      entry.evidence["reason"] = reason;
    };
    const RunSummary summary = world.Run();
    EXPECT_EQ(summary.set_aside, "");
    EXPECT_THAT(summary.given_up, HasSubstr("5 jobs in a row failed alike"));
    EXPECT_EQ(world.launcher.jobs.size(), 5);
  }
}

// The same on a cluster, where the next node lacks what the sweep needs, too.
TEST(NodeFaults, AProgramThatIsMissingSetsNoNodeAside) {
  World world(20);
  world.launcher.max_jobs = 100;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    EndOn("n1", entry);
    entry.evidence["reason"] = "start";
  };
  const RunSummary summary = world.Run();
  EXPECT_EQ(summary.set_aside, "");
  EXPECT_THAT(summary.given_up, HasSubstr("5 jobs in a row failed alike, infrastructure (start)"));
}

TEST(NodeFaults, ATrainerThatCrashesOnEveryPointStopsIt) {
  World world(12);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry, RunStatus::kCrashed); };
  const RunSummary summary = world.Run();
  EXPECT_EQ(summary.failed, 5);
  EXPECT_EQ(summary.no_result, 7);
  EXPECT_TRUE(summary.trainers_fault);
  EXPECT_THAT(summary.given_up, HasSubstr("each of the first 5 points ended alike, crashed: because"));
  // After the repair it measures what is left, and then crashes no longer stop it.
  int run = 0;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) {
    world.Finish(entry, ++run == 1 ? RunStatus::kOk : RunStatus::kCrashed);
  };
  EXPECT_EQ(world.Run().failed, 11);
}

TEST(NodeFaults, ASweepOfPointsThatAreOutOfMemoryGoesOn) {
  World world(9);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry, RunStatus::kOomDevice); };
  EXPECT_EQ(world.Run().out_of_memory, 9);
}

TEST(NodeFaults, ASweepMaySayThatFailuresNeverStopIt) {
  World world(9);
  world.yaml += "launch: {give_up_after: 0, retry: {node: 0}}\n";
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { EndOn("n1 n2", entry); };
  const RunSummary summary = world.Run();
  EXPECT_EQ(summary.infrastructure, 9);
  EXPECT_EQ(summary.given_up, "");
  EXPECT_EQ(world.launcher.jobs.size(), 9);
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry, RunStatus::kCrashed); };
  EXPECT_EQ(world.Run().failed, 9);
}

}  // namespace
}  // namespace ridgeline::driver
