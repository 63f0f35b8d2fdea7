// Sweeps from end to end on a real Slurm that works.
#include "tests/cluster/slurm/slurm.h"

namespace ridgeline {
namespace {

using testing::AsAnotherUser;
using ::testing::HasSubstr;
using testing::kAnotherUser;
using testing::Slurm;
using testing::SlurmAgent;
using testing::SlurmCli;
using testing::SlurmSweep;

TEST(SlurmSweeps, TheEnginesPointsRunAsTasksOfOneArray) {
  const Slurm slurm;
  SlurmCli cli;
  const auto sweep = cli.WriteReal("seed: [1, 2, 3], batch_size: [1, 2]", "client: tools");
  const auto run = cli.Run({"run", sweep});
  cli.ExpectOk(run);
  cli.ExpectOneFinalResultEach(6, 6);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs WHERE state = 'ended' AND evidence ->> '$.slurm_state' = 'COMPLETED'"),
            6);
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT substr(native_id, 1, instr(native_id, '_'))) FROM jobs"), 1);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs WHERE started_unix_ns >= submitted_unix_ns - 1000000000"), 6);
  EXPECT_THAT(cli.Run({"run", sweep}).out, HasSubstr("6 were already measured"));
}

TEST(SlurmSweeps, TheAgentDoesAsTheToolsDo) {
  if (!std::filesystem::exists(SlurmAgent())) GTEST_SKIP() << "libslurm's headers are not here, so it was not built";
  const Slurm slurm;
  SlurmCli cli;
  cli.ExpectOk(cli.Run({"run", cli.WriteReal("seed: [1, 2, 3], batch_size: [1, 2]", "client: agent")}));
  cli.ExpectOneFinalResultEach(6, 6);
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT substr(native_id, 1, instr(native_id, '_'))) FROM jobs"), 1);
}

TEST(SlurmSweeps, RanksOfTwoNodesTrainTogether) {
  const Slurm slurm;
  SlurmCli cli;
  cli.ExpectOk(
      cli.Run({"run", cli.WriteReal("ranks: 2, communicator: gloo, seed: [1, 2]", "nodes: 2, client: tools")}));
  cli.ExpectOneFinalResultEach(2, 2);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs WHERE evidence ->> '$.node' LIKE 'n% n%'"), 2) << "not on two nodes";
}

// One sweep from one rank to four, on nodes for two ranks each. Each point gets the nodes that it needs, and the
// settings of its rule. The driver is killed on the way.
TEST(SlurmSweeps, PointsOfOneSweepGetTheNodesAndSettingsTheyAskFor) {
  const Slurm slurm;
  SlurmCli cli;
  const auto sweep = cli.WriteText(fmt::format(
      "name: test\n"
      "defaults: {{family: llama, layers: 2, hidden: 32, heads: 2, ffn: 64, vocab: 256, seq_length: 32}}\n"
      "matrix: {{ranks: [1, 2, 4], seed: [1, 2]}}\n"
      "measure: {{warmup_steps: 0, steps: 3}}\n"
      "launch:\n"
      "  launcher: slurm\n  cpus: 1\n  ranks_per_node: 2\n  time_limit: 5m\n  slurm: {{client: tools}}\n"
      "  rules: [{{when: {{ranks: 4}}, set: {{time_limit: 9m, slurm: {{prolog: ['echo large >> {}']}}}}}}]\n",
      (cli.dir / "large").string()));
  Child driver = cli.Start({"run", sweep});
  ASSERT_TRUE(testing::Eventually([&] { return !Slurm::Jobs().empty(); }));
  driver.Signal(SIGKILL);
  driver.Wait();
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectOneFinalResultEach(6, 6);
  EXPECT_EQ(ReadFile(cli.dir / "large"), "large\nlarge\n");
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT substr(native_id, 1, instr(native_id, '_'))) FROM jobs"), 3)
      << "an array for what asks for the same: ranks that have to meet have longer";
  const std::string on_two =
      "SELECT count(*) FROM runs JOIN jobs ON jobs.key = runs.job_key WHERE ranks {} 4 AND "
      "jobs.evidence ->> '$.node' LIKE 'n% n%'";
  EXPECT_EQ(cli.Count(fmt::format(fmt::runtime(on_two), "=")), 2);
  EXPECT_EQ(cli.Count(fmt::format(fmt::runtime(on_two), "<")), 0);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM runs WHERE setup ->> '$.nodes' = 2 AND ranks = 4"), 2);
}

// The driver is killed while its jobs run. It looks again when the controller has forgotten them.
void RunUntilForgottenAndAgain(SlurmCli& cli, const SlurmSweep& points) {
  const auto sweep = cli.Write(points);
  Child driver = cli.Start({"run", sweep});
  ASSERT_TRUE(cli.WaitForTrainers(1));
  driver.Signal(SIGKILL);
  driver.Wait();
  ASSERT_TRUE(testing::Eventually([] { return Slurm::Jobs().empty(); })) << "the controller never forgets";
  cli.ExpectUnanswered(cli.Run({"run", sweep}));
}

// Several points of the search run together, the best of them once more. Its driver is killed on the way.
TEST(SlurmSweeps, ASearchIsGoneOnWith) {
  const Slurm slurm;
  SlurmCli cli;
  const auto sweep = cli.WriteText(
      "name: test\n"
      "defaults: {family: llama, layers: 2, hidden: 32, heads: 2, ffn: 64, vocab: 256, seq_length: 32}\n"
      "matrix: {batch_size: 1..16*2, checkpointing: [none, full]}\n"
      "measure: {warmup_steps: 1, steps: 20}\n"
      "search: {maximize: tokens_per_s, budget: 9}\n"
      "launch: {launcher: slurm, cpus: 1, time_limit: 5m, slurm: {client: tools}}\n");
  Child first = cli.Start({"run", sweep});
  ASSERT_TRUE(cli.WaitToRead(first, "[1/"));
  first.Signal(SIGKILL);
  first.Wait();
  const auto run = cli.Run({"run", sweep});
  cli.ExpectOk(run);
  EXPECT_THAT(run.out, HasSubstr("search: the best measured is batch_size="));
  EXPECT_LE(cli.Count("SELECT count(*) FROM results"), 9);
  EXPECT_GE(cli.Count("SELECT count(*) FROM results WHERE campaign = 'default'"), 4);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM (SELECT 1 FROM results GROUP BY point_id, campaign HAVING count(*) > 1)"),
            0);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status <> 'ok'"), 0);
}

// The controller has forgotten everything when the driver looks again, so the accounting must be enough.
TEST(SlurmSweeps, EndsThatOnlyTheAccountingKnowsAreFound) {
  const Slurm slurm({"--accounting", "--min-job-age=2"});
  for (const std::string client : {"client: tools", "client: agent"}) {
    if (client == "client: agent" && !std::filesystem::exists(SlurmAgent())) continue;
    SlurmCli cli;
    RunUntilForgottenAndAgain(cli, {.points = 4, .trainer = "slow=1500, 'exit=7', ok, kill-self", .slurm = client});
    cli.ExpectOneFinalResultEach(4, 2);
    EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs WHERE evidence ->> '$.slurm_state' = 'COMPLETED'"), 4);
    EXPECT_EQ(cli.Starts(), 4);
  }
}

// Without accounting nobody can be asked, but the results exist.
TEST(SlurmSweeps, ResultsOfJobsThatNobodyKnowsAnyMoreAreCollected) {
  const Slurm slurm({"--min-job-age=2"});
  SlurmCli cli;
  RunUntilForgottenAndAgain(cli, {.points = 3, .trainer = "slow=1500, 'exit=7', ok"});
  cli.ExpectOneFinalResultEach(3, 2);
  EXPECT_EQ(cli.Starts(), 3);
}

TEST(SlurmSweeps, AnOrdinaryUsersClusterNeedsNoRoot) {
  if (AsAnotherUser().empty()) GTEST_SKIP() << "only root can become another user";
  const Slurm slurm({}, AsAnotherUser());
  SlurmCli cli;
  cli.prefix = AsAnotherUser();
  ASSERT_TRUE(ridgeline::Run({"chown", kAnotherUser, cli.dir.path()}).status.ok());
  const auto sweep = cli.WriteReal("seed: [1, 2]", "client: tools");
  const auto run = cli.Run({"run", sweep});
  if (run.err.find("Permission denied") != std::string::npos) GTEST_SKIP() << "others may not see this build";
  cli.ExpectOk(run);
  cli.ExpectOneFinalResultEach(2, 2);
}

TEST(SlurmSweeps, AUsersJobsRunOnRootsClusterUnderThatUser) {
  if (AsAnotherUser().empty()) GTEST_SKIP() << "only root can become another user";
  const Slurm slurm;
  SlurmCli cli;
  cli.prefix = AsAnotherUser();
  ASSERT_TRUE(ridgeline::Run({"chown", kAnotherUser, cli.dir.path()}).status.ok());
  const auto run = cli.Run({"run", cli.Write({.points = 4})});
  if (run.err.find("Permission denied") != std::string::npos) GTEST_SKIP() << "others may not see this build";
  cli.ExpectOk(run);
  cli.ExpectOneFinalResultEach(4, 4);
}

TEST(SlurmSweeps, ADetachedRunIsFollowedByTheNext) {
  const Slurm slurm;
  SlurmCli cli;
  const auto sweep = cli.Write({.points = 6, .trainer = "slow=2000"});
  const auto detached = cli.Run({"run", sweep, "--detach"});
  cli.ExpectOk(detached);
  EXPECT_THAT(detached.out, HasSubstr("6 jobs go on by themselves"));
  EXPECT_EQ(Slurm::Jobs().size(), 6U);
  EXPECT_THAT(Slurm::Ask({"squeue", "--noheader", "--states=all", "--format=%j"}), ::testing::StartsWith("test.1.rl-"));
  cli.ExpectOk(cli.Run({"status", "--watch"}));
  EXPECT_THAT(cli.Run({"status"}).out, HasSubstr("these jobs have their results"));
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectEachRanOnce(6);
}

TEST(SlurmSweeps, ClusterByItsNameIsTheClusterInEveryCall) {
  const Slurm slurm({"--accounting"});
  SlurmCli cli;
  cli.ExpectOk(cli.Run({"run", cli.Write({.points = 2, .slurm = "clusters: testing"})}));
  cli.ExpectOneFinalResultEach(2, 2);
  const auto agent = cli.Run({"run", cli.Write({.points = 3, .slurm = "clusters: testing, client: agent"})});
  EXPECT_THAT(agent.err, HasSubstr("own cluster, and not to testing"));
}

// No driver has polled these jobs. Slurm tells `status` what they wait for.
TEST(SlurmSweeps, StatusSaysWhyJobsOfADetachedRunWait) {
  for (const char* client : {"client: tools", "client: agent"}) {
    const Slurm slurm({"--nodes=1"});
    SlurmCli cli;
    const auto sweep = cli.Write({.points = 3, .trainer = "slow=4000", .slurm = std::string("cpus: 16, ") + client});
    cli.ExpectOk(cli.Run({"run", sweep, "--detach"}));
    const std::string database = cli.Cell("SELECT group_concat(key || state || evidence || native_id) FROM jobs");
    EXPECT_TRUE(testing::Eventually([&] {
      const std::string status = cli.Run({"status"}).out;
      return status.find("Resources") != std::string::npos || status.find("Priority") != std::string::npos;
    })) << cli.Run({"status"}).out;
    EXPECT_EQ(cli.Cell("SELECT group_concat(key || state || evidence || native_id) FROM jobs"), database);
    EXPECT_EQ(Slurm::Jobs().size(), 3U) << "it has submitted or cancelled one";
    cli.ExpectOk(cli.Run({"status", "--watch"}));
    cli.ExpectOk(cli.Run({"run", sweep}));
    cli.ExpectEachRanOnce(3);
  }
}

class SlurmLimits : public testing::ThroughAClient {};

// The largest index of an array is MaxArraySize - 1.
TEST_P(SlurmLimits, ArraysAreAsLongAsTheClusterAllows) {
  const Slurm slurm({"--max-array=4"});
  SlurmCli cli;
  cli.ExpectOk(cli.Run({"run", cli.Write({.points = 10, .slurm = client_})}));
  cli.ExpectOneFinalResultEach(10, 10);
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT substr(native_id, 1, instr(native_id, '_'))) FROM jobs"), 3);
  EXPECT_EQ(cli.Starts(), 10);
}

TEST_P(SlurmLimits, WithoutArraysEveryJobIsItsOwn) {
  const Slurm slurm({"--max-array=0"});
  SlurmCli cli;
  cli.ExpectOk(cli.Run({"run", cli.Write({.points = 3, .slurm = client_})}));
  cli.ExpectOneFinalResultEach(3, 3);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs WHERE instr(native_id, '_') > 0"), 0);
}

// Ended jobs also fill the table until they are forgotten.
TEST_P(SlurmLimits, AFullJobTableOnlyDelays) {
  const Slurm slurm({"--max-jobs=6", "--min-job-age=2"});
  SlurmCli cli;
  cli.ExpectOk(cli.Run({"run", cli.Write({.points = 12, .slurm = client_})}));
  cli.ExpectOneFinalResultEach(12, 12);
  EXPECT_EQ(cli.Starts(), 12);
}

TEST_P(SlurmLimits, AThrottleHoldsForAllArraysTogether) {
  const Slurm slurm({"--max-array=3"});
  SlurmCli cli;
  Child run = cli.Start(
      {"run", cli.Write({.points = 7, .trainer = "slow=300", .slurm = client_, .launch = "max_parallel: 2"})});
  int64_t most = 0;
  while (!run.WaitFor(50'000'000)) most = std::max(most, Slurm::JobsThatAre("RUNNING"));
  cli.ExpectOk(cli.Finish(run));
  EXPECT_LE(most, 2);
  EXPECT_GE(most, 1);
  cli.ExpectOneFinalResultEach(7, 7);
}

INSTANTIATE_TEST_SUITE_P(Through, SlurmLimits, ::testing::Values("tools", "agent"),
                         [](const auto& client) { return client.param; });

}  // namespace
}  // namespace ridgeline
