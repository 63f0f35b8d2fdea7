// `ridgeline exec` over points whose ranks are processes, on one node and on several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <set>
#include <sstream>

#include "base/cores.h"
#include "base/files.h"
#include "base/port.h"
#include "base/process.h"
#include "node/exec.h"
#include "tests/fakes/test_job.h"

namespace ridgeline::node {
namespace {

using ::testing::AllOf;
using testing::Eventually;
using testing::FakeProgram;
using ::testing::HasSubstr;
using testing::ProcessesWith;
using testing::ResultOf;
using testing::WriteJob;

class ExecRanks : public ::testing::Test {
 protected:
  // A job of one point with `ranks` ranks.
  Job MakeJob(const std::vector<std::string>& trainer, int64_t ranks, Json more = Json::object()) {
    Json values = {{"family", "llama"}, {"layers", 2}, {"hidden", 32},     {"heads", 2},    {"ffn", 64},
                   {"vocab", 64},       {"steps", 3},  {"seq_length", 16}, {"ranks", ranks}};
    values.update(more);
    std::vector<Problem> problems;
    const RunSpec spec = BuildSpec(values, problems);
    EXPECT_TRUE(problems.empty());
    Job job;
    job.key = job.sweep = "test";
    job.job_dir = dir_.path() / "job";
    job.trainer = trainer;
    job.keep_logs = true;
    job.points.push_back({PointId(spec), spec, 0});
    WriteJob(job);
    return job;
  }
  Job MakeFake(const std::string& mode, int64_t ranks) { return MakeJob({FakeProgram("fake_trainer"), mode}, ranks); }
  Job MakeReal(int64_t ranks, const Json& more = Json::object()) {
    return MakeJob({std::filesystem::path(RIDGELINE_BINARY_DIR) / "bin/ridgeline-train"}, ranks, more);
  }

  // Ranks that must be ended are ended soon if the grace time is short.
  Child Start(const Job& job, const std::map<std::string, std::string>& environment = {}, int64_t grace_ms = 60'000) {
    SpawnOptions options;
    options.stdout_file = options.stderr_file = dir_.path() / "exec.log";
    options.die_with_parent = true;
    options.environment = environment;
    return Child::Spawn({FakeProgram("mini_ridgeline"), "exec", JobFile(job), std::to_string(grace_ms)}, options);
  }
  RunResult Run(const Job& job, int64_t grace_ms = 60'000) {
    WriteJob(job);
    EXPECT_EQ(Start(job, {}, grace_ms).Wait().exit_code, 0) << Log();
    EXPECT_TRUE(Eventually([&] { return ProcessesWith(dir_.path()).empty(); })) << "a rank is left";
    return ResultOf(job);
  }
  std::string Log() const { return ReadTail(dir_.path() / "exec.log", 4096); }
  std::string LogOf(const Job& job, const std::string& log) const {
    return ReadTail(PointDir(job.job_dir, job.points[0].id) / log, 1 << 16);
  }

  TempDir dir_;
};

TEST_F(ExecRanks, EveryRankIsToldItsPlace) {
  const Job job = MakeFake("environment", 3);
  EXPECT_EQ(Run(job).status, RunStatus::kOk);
  std::set<std::string> ports;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string log = LogOf(job, rank == 0 ? "log.txt" : "log." + std::to_string(rank) + ".txt");
    const std::string number = std::to_string(rank);
    EXPECT_THAT(log, AllOf(HasSubstr("\nRANK=" + number + "\n"), HasSubstr("LOCAL_RANK=" + number + "\n"),
                           HasSubstr("WORLD_SIZE=3\n"), HasSubstr("MASTER_ADDR=127.0.0.1\n")));
    const size_t port = log.find("MASTER_PORT=");
    ports.insert(log.substr(port, log.find('\n', port) - port));
    EXPECT_EQ(log.find("RIDGELINE_PROGRESS=\n") == std::string::npos, rank == 0) << "rank 0 alone tells its progress";
  }
  EXPECT_EQ(ports.size(), 1U);
  EXPECT_NE(*ports.begin(), "MASTER_PORT=");
}

TEST_F(ExecRanks, TheirSecretIsInOneFileThatItsOwnerAloneReads) {
  const Job job = MakeFake("sleep", 2);
  const std::filesystem::path file = SecretFile(job.job_dir);
  WriteFileAtomic(file, "of an attempt that was killed");
  Child exec = Start(job, {}, 50);
  const auto ranks = [&] { return ProcessesWith(PointDir(job.job_dir, job.points[0].id)); };
  ASSERT_TRUE(Eventually([&] { return ranks().size() == 2; })) << Log();
  std::string secret = ReadFile(file);
  secret.pop_back();
  EXPECT_EQ(secret.size(), 64U);
  EXPECT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600));
  std::vector<pid_t> processes = ranks();
  for (const pid_t rank : processes) {
    EXPECT_THAT(ReadFile("/proc/" + std::to_string(rank) + "/environ"),
                HasSubstr("RIDGELINE_SECRET_FILE=" + file.string()));
  }
  processes.push_back(exec.pid());
  for (const pid_t pid : processes) {
    for (const char* told : {"/environ", "/cmdline"}) {
      EXPECT_EQ(ReadFile("/proc/" + std::to_string(pid) + told).find(secret), std::string::npos) << told;
    }
  }
  exec.Signal(SIGINT);
  exec.Wait();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path())) {
    EXPECT_NE(entry.path().filename(), file.filename());
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(ReadFile(entry.path()).find(secret), std::string::npos) << entry.path();
  }
}

TEST_F(ExecRanks, ASecretThatIsBroughtIsTheirs) {
  const Job job = MakeFake("environment", 2);
  const std::filesystem::path brought = dir_ / "brought";
  WritePrivateFile(brought, std::string(64, 'b'));
  EXPECT_EQ(Start(job, {{"RIDGELINE_SECRET_FILE", brought}}).Wait().exit_code, 0) << Log();
  for (const char* log : {"log.txt", "log.1.txt"}) {
    EXPECT_THAT(LogOf(job, log), HasSubstr("RIDGELINE_SECRET_FILE=" + brought.string() + "\n"));
  }
  EXPECT_TRUE(std::filesystem::exists(brought));
}

TEST_F(ExecRanks, APointOfOneRankNeedsNoSecret) {
  const Job job = MakeFake("environment", 1);
  EXPECT_EQ(Run(job).status, RunStatus::kOk);
  EXPECT_THAT(LogOf(job, "log.txt"), HasSubstr("RIDGELINE_SECRET_FILE=\n"));
}

TEST_F(ExecRanks, RanksHaveCoresOfTheirOwn) {
  const Job job = MakeFake("environment", 2);
  std::string given;
  for (const int core : CoresAllowed().ids) given += (given.empty() ? "" : ",") + std::to_string(core);
  EXPECT_EQ(Start(job, {{kOwnCoresVariable, given}}).Wait().exit_code, 0) << Log();
  const auto cores = [&](const std::string& log) {
    std::multiset<std::string> found;
    std::istringstream lines(LogOf(job, log));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("core ")) found.insert(line);
    }
    return found;
  };
  std::multiset<std::string> all = cores("log.txt");
  all.merge(cores("log.1.txt"));
  const std::set<std::string> distinct(all.begin(), all.end());
  EXPECT_TRUE(distinct.size() == all.size() || all.size() == 2) << "more cores than ranks, and they share one";
}

TEST_F(ExecRanks, APointOfOneRankIgnoresRanksInItsEnvironment) {
  SpawnOptions options;
  const Job job = MakeFake("environment", 1);
  EXPECT_EQ(Start(job, {{"RANK", "7"}, {"WORLD_SIZE", "8"}}).Wait().exit_code, 0);
  EXPECT_THAT(LogOf(job, "log.txt"), AllOf(HasSubstr("\nRANK=0\n"), HasSubstr("WORLD_SIZE=1\n")));
}

TEST_F(ExecRanks, TheFirstThatFailsEndsTheOthersAndIsNamed) {
  const RunResult result = Run(MakeFake("rank-exits-11=2", 3), 50);
  EXPECT_EQ(result.status, RunStatus::kOomHost);
  EXPECT_THAT(result.message, HasSubstr("rank 2 ended with exit code 11"));
  EXPECT_EQ(result.evidence.at("rank"), "2");
  EXPECT_EQ(result.evidence.at("exit_code"), "11");
}

TEST_F(ExecRanks, ASignalOfARankIsEvidence) {
  const RunResult result = Run(MakeFake("rank-is-killed=0", 2), 50);
  EXPECT_EQ(result.status, RunStatus::kCrashed);
  EXPECT_THAT(result.message, HasSubstr("rank 0 ended with signal 9"));
  EXPECT_EQ(result.evidence.at("signal"), "9");
}

TEST_F(ExecRanks, RankZeroHasTimeToSayWhatItSaw) {
  const RunResult result = Run(MakeFake("rank-lost=1", 2));
  EXPECT_EQ(result.status, RunStatus::kCrashed);
  EXPECT_EQ(result.message, "rank 1 on somewhere closed the connection");
  EXPECT_EQ(result.evidence.at("rank"), "1");
  EXPECT_EQ(result.evidence.at("signal"), "9");
}

TEST_F(ExecRanks, TheMemoryLimitIsOfAllRanksTogether) {
  Job job = MakeFake("eat-mib=120", 3);
  job.memory_limit_bytes = 300'000'000;  // each rank alone is within it
  const RunResult result = Run(job);
  EXPECT_EQ(result.status, RunStatus::kOomHost);
  EXPECT_GT(std::stoll(result.evidence.at("rss_bytes")), job.memory_limit_bytes);
  EXPECT_GT(std::stoll(result.evidence.at("rss_peak_bytes")), job.memory_limit_bytes);
}

TEST_F(ExecRanks, TheTimeLimitEndsAllRanks) {
  Job job = MakeFake("sleep", 3);
  job.points[0].time_limit_s = 1;
  EXPECT_EQ(Run(job).status, RunStatus::kTimeout);
}

TEST_F(ExecRanks, TrainRealRanks) {
  const RunResult result = Run(MakeReal(2, {{"shard", "full"}}));
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.communicator, "gloo");
  EXPECT_EQ(result.tokens_per_step, 2 * 16);
  ASSERT_EQ(result.ranks.size(), 2U);
  EXPECT_GT(result.ranks[1].rss_peak_bytes, 0);
}

TEST_F(ExecRanks, ARealRankThatIsKilledIsNamed) {
  const Job job = MakeReal(3, {{"steps", 1'000'000}});
  Child exec = Start(job);
  const auto id = job.points[0].id;
  ASSERT_TRUE(Eventually([&] { return !ReadTail(ProgressFile(job.job_dir, id), 10).empty(); })) << Log();
  // The child whose log is rank 1's.
  for (const pid_t pid : ProcessesWith("ridgeline-train")) {
    std::error_code ec;
    const auto log = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/fd/1", ec);
    if (log == PointDir(job.job_dir, id) / "log.1.txt") ::kill(pid, SIGKILL);
  }
  EXPECT_EQ(exec.Wait().exit_code, 0) << Log();
  const RunResult result = ResultOf(job);
  EXPECT_EQ(result.status, RunStatus::kCrashed);
  EXPECT_THAT(result.message, HasSubstr("rank 1 on "));
  EXPECT_EQ(result.evidence.at("rank"), "1");
}

TEST_F(ExecRanks, NodesThatCannotShareTheRanksStartNone) {
  const Job job = MakeReal(3);
  EXPECT_EQ(
      Start(
          job,
          {{"RIDGELINE_NNODES", "2"}, {"RIDGELINE_NODE_RANK", "0"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}})
          .Wait()
          .exit_code,
      0);
  EXPECT_EQ(EndOf(ResultOf(job)), InfrastructureReason::kStart);
  EXPECT_EQ(ResultOf(job).message, "2 nodes cannot share 3 ranks evenly");
}

TEST_F(ExecRanks, RanksThatNeverMeetAreNoResultOfTheirs) {
  Job job = MakeFake("sleep", 2);
  job.meet_limit_s = 1;
  job.points[0].time_limit_s = 600;
  const RunResult result = Run(job, 50);
  EXPECT_EQ(EndOf(result), InfrastructureReason::kStart) << result.message;
  EXPECT_THAT(result.message, HasSubstr("had not met after 1 s"));
  EXPECT_FALSE(result.evidence.at("node").empty());
  EXPECT_GE(result.ended_unix_ns - result.started_unix_ns, 1'000'000'000);
}

TEST_F(ExecRanks, TheTimeLimitCountsFromWhenTheyHaveMet) {
  Job job = MakeFake("meets=1500", 2);
  job.meet_limit_s = 600;
  job.points[0].time_limit_s = 1;
  const RunResult result = Run(job);
  EXPECT_EQ(result.status, RunStatus::kTimeout) << result.message;
  EXPECT_GE(result.ended_unix_ns - result.started_unix_ns, 2'500'000'000);
}

TEST_F(ExecRanks, AnEndBeforeTheRanksHaveMetIsNoCrash) {
  Job job = MakeFake("exit=3", 2);
  job.meet_limit_s = 600;
  EXPECT_EQ(EndOf(Run(job)), InfrastructureReason::kStart);
  job = MakeFake("exit=2", 2);
  job.meet_limit_s = 600;
  std::filesystem::remove(ResultsFile(job.job_dir));
  EXPECT_EQ(Run(job).status, RunStatus::kInvalid) << "its own word";
  job = MakeFake("meets-and-exits=3", 2);
  job.meet_limit_s = 600;
  std::filesystem::remove(ResultsFile(job.job_dir));
  EXPECT_EQ(Run(job).status, RunStatus::kCrashed);
}

TEST_F(ExecRanks, ALoneProcessBeginsAsItIsStarted) {
  Job job = MakeFake("sleep", 1);
  job.meet_limit_s = 600;
  job.points[0].time_limit_s = 1;
  EXPECT_EQ(Run(job, 50).status, RunStatus::kTimeout);
}

TEST_F(ExecRanks, RealRanksSayWhenTheyHaveMet) {
  Job job = MakeReal(2, {{"steps", 1'000'000}});
  job.meet_limit_s = 20;
  job.points[0].time_limit_s = 1;
  const RunResult result = Run(job, 50);
  EXPECT_EQ(result.status, RunStatus::kTimeout) << result.message;
}

TEST_F(ExecRanks, HalfAGangOfRealRanksIsNoCrash) {
  Job job = MakeReal(2);
  job.meet_limit_s = 600;
  const ReservedPort port;
  std::map<std::string, std::string> node = {{"RIDGELINE_NNODES", "2"},
                                             {"RIDGELINE_NODE_RANK", "0"},
                                             {"MASTER_ADDR", "127.0.0.1"},
                                             {"MASTER_PORT", std::to_string(port.number())},
                                             {"RIDGELINE_COMM_TIMEOUT_S", "1"}};
  // Here the ranks themselves give up.
  EXPECT_EQ(Start(job, node).Wait().exit_code, 0) << Log();
  EXPECT_EQ(EndOf(ResultOf(job)), InfrastructureReason::kStart) << ResultOf(job).message;
  EXPECT_THAT(ResultOf(job).message, HasSubstr("rank 1 of 2 did not come"));
  // Here exec gives up.
  job.meet_limit_s = 1;
  WriteJob(job);
  node["RIDGELINE_COMM_TIMEOUT_S"] = "600";
  EXPECT_EQ(Start(job, node, 50).Wait().exit_code, 0) << Log();
  EXPECT_EQ(EndOf(ResultOf(job)), InfrastructureReason::kStart);
  EXPECT_THAT(ResultOf(job).message, HasSubstr("had not met after 1 s"));
}

// Two execs on one machine stand for two nodes.
class ExecNodes : public ExecRanks {
 protected:
  // Starts the `node`-th node, which its scheduler calls n0 or n1.
  Child StartNode(const Job& job, int node, std::map<std::string, std::string> more = {}) {
    more.insert({{"RIDGELINE_NNODES", "2"},
                 {"RIDGELINE_NODE_RANK", std::to_string(node)},
                 {"RIDGELINE_NODE", "n" + std::to_string(node)},
                 {"MASTER_ADDR", "127.0.0.1"},
                 {"MASTER_PORT", std::to_string(port_.number())}});
    return Start(job, more, 1'000);
  }
  // A point of four ranks on both nodes, training.
  std::vector<Child> StartBoth(const Job& job) {
    std::vector<Child> nodes;
    for (const int node : {0, 1}) nodes.push_back(StartNode(job, node));
    const auto progress = ProgressFile(job.job_dir, job.points[0].id);
    EXPECT_TRUE(Eventually([&] {
      const std::string steps = ReadTail(progress, 80);
      return !steps.empty() && steps.front() != '0';
    })) << Log();
    return nodes;
  }
  Job LongJob() { return MakeReal(4, {{"steps", 1'000'000}}); }

  ReservedPort port_;
};

TEST_F(ExecNodes, RunAJobTogether) {
  const Job job = MakeReal(4, {{"shard", "optimizer"}});
  // Node 1 comes first here, and finds what an earlier attempt left.
  WritePrivateFile(SecretFile(job.job_dir), std::string(64, 's'));
  std::vector<Child> nodes;
  for (const int node : {1, 0}) nodes.push_back(StartNode(job, node));
  for (Child& node : nodes) EXPECT_EQ(node.Wait().exit_code, 0) << Log();
  const RunResult result = ResultOf(job);
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.ranks.size(), 4U);
  const auto dir = PointDir(job.job_dir, job.points[0].id);
  EXPECT_TRUE(std::filesystem::exists(dir / "log.3.txt"));
  EXPECT_FALSE(std::filesystem::exists(dir / PartName(1)));
}

TEST_F(ExecNodes, ANodeThatIsGoneIsTheInfrastructures) {
  const Job job = LongJob();
  std::vector<Child> nodes = StartBoth(job);
  nodes[1].Signal(SIGKILL);  // its ranks die with it
  EXPECT_EQ(nodes[0].Wait().exit_code, 0) << Log();
  const RunResult result = ResultOf(job);
  EXPECT_EQ(EndOf(result), InfrastructureReason::kNode) << result.message;
  EXPECT_THAT(result.message, AllOf(HasSubstr("closed the connection"), HasSubstr("n1 is gone")));
  EXPECT_EQ(result.evidence.at("node"), "n1");
}

TEST_F(ExecNodes, ARankThatDiesOnAnotherNodeIsACrash) {
  const Job job = LongJob();
  std::vector<Child> nodes = StartBoth(job);
  const auto log = PointDir(job.job_dir, job.points[0].id) / "log.3.txt";
  for (const pid_t pid : ProcessesWith("ridgeline-train")) {
    std::error_code ec;
    if (std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/fd/1", ec) == log) ::kill(pid, SIGSEGV);
  }
  for (Child& node : nodes) EXPECT_EQ(node.Wait().exit_code, 0) << Log();
  EXPECT_EQ(ResultOf(job).status, RunStatus::kCrashed) << ResultOf(job).message;
  EXPECT_THAT(ResultOf(job).message, HasSubstr("rank 3 on "));
  EXPECT_EQ(ResultOf(job).evidence.at(kNodesEvidence), "2");
}

TEST_F(ExecNodes, ANodeThatMustLeaveIsPreempted) {
  const Job job = LongJob();
  std::vector<Child> nodes = StartBoth(job);
  nodes[1].Signal(SIGKILL);
  ASSERT_TRUE(Eventually([&] { return ProcessesWith((job.job_dir / "points").string()).empty(); }));
  nodes[0].Signal(SIGTERM);
  nodes[0].Wait();
  EXPECT_EQ(EndOf(ResultOf(job)), InfrastructureReason::kPreempted) << ResultOf(job).message;
}

// Like the pods of a Kubernetes Job: each has its own folder, and a secret from outside.
TEST_F(ExecNodes, WithoutASharedFolderMeetByASecretThatIsBrought) {
  const Job job = MakeReal(2);
  Job elsewhere = job;
  elsewhere.job_dir = dir_.path() / "elsewhere";
  WriteJob(elsewhere);
  WritePrivateFile(dir_ / "secret", std::string(64, 's'));
  std::vector<Child> nodes;
  for (const int node : {1, 0}) {
    nodes.push_back(StartNode(node == 0 ? job : elsewhere, node, {{"RIDGELINE_SECRET_FILE", dir_ / "secret"}}));
  }
  for (Child& node : nodes) EXPECT_EQ(node.Wait().exit_code, 0) << Log();
  EXPECT_EQ(ResultOf(job).status, RunStatus::kOk) << ResultOf(job).message;
  EXPECT_FALSE(std::filesystem::exists(SecretFile(job.job_dir)));
}

}  // namespace
}  // namespace ridgeline::node
