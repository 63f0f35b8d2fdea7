// What the store says about nodes that die, limits that are passed, and jobs that are cancelled, preempted, held and
// refused.
#include "tests/cluster/slurm/slurm.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using testing::AsAnotherUser;
using testing::Eventually;
using ::testing::HasSubstr;
using testing::kAnotherUser;
using testing::Slurm;
using testing::SlurmCli;

std::string OnlyJob() { return Slurm::Jobs().begin()->first; }

TEST(SlurmFaults, ANodeThatCrashesIsANodeFailureAndThePointIsRunAgain) {
  const Slurm slurm;
  SlurmCli cli;
  Child run =
      cli.Start({"run", cli.Write({.points = 2, .trainer = "slow=10000", .slurm = "exclusive: true, client: tools"})});
  ASSERT_TRUE(cli.WaitForTrainers(2));
  slurm.Node(Slurm::NodeOf(OnlyJob()), "crash");
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(2, 2);
  EXPECT_EQ(cli.Statuses(), "infrastructure ok ok");
  EXPECT_EQ(cli.Of("reason", "infrastructure"), "node");
  EXPECT_EQ(cli.Evidence("slurm_state", "infrastructure"), "NODE_FAIL");
  EXPECT_THAT(cli.Evidence("node", "infrastructure"), ::testing::StartsWith("n"));
  EXPECT_THAT(cli.Of("message", "infrastructure"), HasSubstr("a node of the job failed"));
  EXPECT_THAT(cli.Of("hint", "infrastructure"), HasSubstr("sinfo -R"));
}

// A crash is all that a node sees of another node that is lost. Slurm learns later that it was lost.
TEST(SlurmFaults, IfOneOfTwoNodesIsLostItCausedTheOthersCrash) {
  const Slurm slurm;
  SlurmCli cli;
  const std::string folder = cli.dir.path();
  const std::string script = fmt::format(
      "cd {0}; if [ -e lost ]; then [ $RANK = 0 ] || exit 0; exec {1} ok \"$@\"; fi; "
      "if [ $RANK = 1 ]; then echo $SLURMD_NODENAME >second; exec sleep infinity; fi; "
      "echo >first; until [ -e lost ]; do sleep 0.1; done; echo the other is gone; exit 7",
      folder, testing::FakeProgram("fake_trainer").string());
  Child run = cli.Start(
      {"run", cli.WriteText(fmt::format("name: test\n"
                                        "defaults: {{model: llama-5m, seq_length: 64, ranks: 2}}\n"
                                        "launch: {{launcher: slurm, cpus: 1, trainer: [/bin/sh, -c, {}, other], "
                                        "slurm: {{client: tools, nodes: 2}}}}\n",
                                        DumpJson(script)))});
  const auto both_wait = [&] {
    return std::filesystem::exists(cli.dir / "first") &&
           ReadFileIfThere(cli.dir / "second").value_or("").ends_with('\n');
  };
  ASSERT_TRUE(Eventually(both_wait));
  const std::string second = ReadFile(cli.dir / "second");
  slurm.Node(second.substr(0, second.size() - 1), "crash");
  WriteFileAtomic(cli.dir / "lost", "");
  cli.ExpectOk(cli.Finish(run));
  EXPECT_EQ(cli.Statuses(), "infrastructure ok") << cli.NotOk();
  EXPECT_EQ(cli.Of("reason", "infrastructure"), "node");
  EXPECT_EQ(cli.Evidence("slurm_state", "infrastructure"), "NODE_FAIL");
  EXPECT_THAT(cli.Of("message", "infrastructure"),
              AllOf(HasSubstr("a node of the job failed"), HasSubstr("on its first node it was crashed")));
  EXPECT_THAT(cli.Evidence("log_tail", "infrastructure"), HasSubstr("the other is gone"));
}

TEST(SlurmFaults, SlurmItselfMayRequeueTheJobOfANodeThatCrashes) {
  const Slurm slurm;
  SlurmCli cli;
  Child run = cli.Start({"run", cli.Write({.trainer = "slow=10000", .slurm = "requeue: true, client: tools"})});
  ASSERT_TRUE(cli.WaitForTrainers(1));
  slurm.Node(Slurm::NodeOf(OnlyJob()), "crash");
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(1, 1);
  EXPECT_EQ(cli.Statuses(), "ok") << "the driver had nothing to do with it";
  EXPECT_EQ(cli.Cell("SELECT evidence ->> '$.restarts' FROM jobs"), "1");
}

// Slurm gives the job to another node while the first still runs it. The second one waits its turn, and finds a result.
TEST(SlurmFaults, AStepThatOutlivesItsSlurmdIsNotRunBesideItsSuccessor) {
  const Slurm slurm;
  SlurmCli cli;
  Child run = cli.Start({"run", cli.Write({.trainer = "slow=20000", .slurm = "requeue: true, client: tools"})});
  ASSERT_TRUE(cli.WaitForTrainers(1));
  slurm.Node(Slurm::NodeOf(OnlyJob()), "kill");
  while (!run.WaitFor(50'000'000)) EXPECT_LE(cli.Trainers().size(), 1U) << "the point runs twice at once";
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(1, 1);
  EXPECT_EQ(cli.Statuses(), "ok");
  EXPECT_EQ(cli.Starts(), 1);
}

TEST(SlurmFaults, AJobPastItsTimeLimitIsATimeout) {
  const Slurm slurm;
  SlurmCli cli;
  cli.ExpectUnanswered(cli.Run({"run", cli.Write({.trainer = "sleep", .slurm = "time: 1m, client: tools"})}));
  cli.ExpectOneFinalResultEach(1, 0);
  EXPECT_EQ(cli.Statuses(), "timeout");
  EXPECT_EQ(cli.Evidence("slurm_state", "timeout"), "TIMEOUT");
  EXPECT_THAT(cli.Cell("SELECT message FROM results"), HasSubstr("past its time limit in Slurm"));
  EXPECT_THAT(cli.Cell("SELECT hint FROM results"), HasSubstr("launch: slurm: time"));
}

// The steps exceed every limit, so only the warnings end an attempt, however fast the machine is.
TEST(SlurmFaults, AWarningBeforeTheTimeLimitSavesThePointAndItGoesOn) {
  const Slurm slurm;
  SlurmCli cli;
  // The first warning comes when the job is 15 s old, and Slurm sends it up to half a minute late. On a busy machine,
  // the job has time for steps before it, and more than two minutes to save after it.
  const auto sweep = cli.WriteReal("seed: [1], seq_length: [256]", "client: tools, time: 3m, signal: 'B:USR1@165'",
                                   "checkpoint: {dir: state, every_steps: 1000000}\n", 1'000'000);
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(Eventually([&] { return cli.StepsDone() > 0; }));
  const std::string warned = "FROM results WHERE status = 'infrastructure' AND reason = 'preempted'";
  while (cli.Count("SELECT count(*) " + warned) < 2) ASSERT_FALSE(run.WaitFor(200'000'000)) << cli.NotOk();
  run.Signal(SIGINT);
  cli.Finish(run);
  const auto step = [&](const std::string& name, int attempt) {
    return cli.Count(
        fmt::format("SELECT CAST(evidence ->> '$.{}' AS INTEGER) {} AND attempt = {}", name, warned, attempt));
  };
  EXPECT_GT(step("checkpoint_step", 1), 0) << cli.NotOk();
  EXPECT_EQ(step("resumed_from_step", 2), step("checkpoint_step", 1)) << cli.NotOk();
  EXPECT_GT(step("checkpoint_step", 2), step("checkpoint_step", 1)) << cli.NotOk();
  cli.ExpectNothingLeft();
}

TEST(SlurmFaults, MoreMemoryThanTheCgroupAllowsIsOutOfMemory) {
  if (::geteuid() != 0 || ::access("/sys/fs/cgroup/memory", W_OK) != 0) {
    GTEST_SKIP() << "Slurm can make no memory cgroups here: it takes root and a writable cgroup v1 hierarchy";
  }
  const Slurm slurm({"--cgroup", "--nodes=1"});
  SlurmCli cli;
  cli.ExpectUnanswered(cli.Run({"run", cli.Write({.trainer = "eat", .slurm = "memory: 100MiB, client: tools"})}));
  cli.ExpectOneFinalResultEach(1, 0);
  EXPECT_EQ(cli.Statuses(), "oom_host");
  EXPECT_THAT(cli.Cell("SELECT message FROM results"), HasSubstr("memory"));
  EXPECT_EQ(cli.Cell("SELECT evidence ->> '$.slurm_state' FROM jobs"), "OUT_OF_MEMORY");
}

TEST(SlurmFaults, AJobCancelledByHandIsCancelledAndRunAgainOnlyWhenAsked) {
  const Slurm slurm;
  SlurmCli cli;
  const auto sweep = cli.Write({.points = 4, .trainer = "slow=8000"});
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(cli.WaitForTrainers(4));
  const std::string task = OnlyJob();
  Slurm::Ask({"scancel", task});
  cli.Finish(run);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'cancelled'"), 1) << cli.Statuses();
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'ok'"), 3) << cli.Statuses();
  EXPECT_EQ(cli.Cell("SELECT native_id FROM jobs WHERE evidence ->> '$.slurm_state' = 'CANCELLED'"), task);
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectOneFinalResultEach(4, 4);
}

TEST(SlurmFaults, AWholeArrayCancelledByHandIsCancelledToItsLastTask) {
  const Slurm slurm(
      {"--nodes=1", "--accounting"});  // 16 cores: the others wait, and only the accounting has a record of them
  SlurmCli cli;
  const auto sweep = cli.Write({.points = 24, .trainer = "slow=20000"});
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(cli.WaitForTrainers(16));
  Slurm::Ask({"scancel", "--user=root"});
  cli.Finish(run);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM latest WHERE status = 'cancelled'"), 24) << cli.Statuses();
  cli.Write({.points = 24});
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectOneFinalResultEach(24, 24);
}

// Everything, including the driver, by `ridgeline cancel` and Ctrl-C.
TEST(SlurmFaults, CtrlCCancelsWhatRunsAndWhatWaits) {
  const Slurm slurm({"--nodes=1"});
  SlurmCli cli;
  auto sweep = cli.Write({.points = 24, .trainer = "sleep"});
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(cli.WaitForTrainers(16));
  run.Signal(SIGINT);
  const auto output = cli.Finish(run);
  EXPECT_EQ(output.status.exit_code, 130) << output.out << output.err;
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'cancelled'"), 24) << cli.Statuses();
  cli.ExpectNothingLeft();
  sweep = cli.Write({.points = 24});
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectOneFinalResultEach(24, 24);
}

std::vector<std::string> PreemptingPartitions(const std::string& mode) {
  return {"--nodes=1", "--config=PreemptType=preempt/partition_prio", "--config=PreemptMode=" + mode,
          "--config=PartitionName=low Nodes=ALL PriorityTier=1 GraceTime=0 PreemptMode=" + mode,
          "--config=PartitionName=high Nodes=ALL PriorityTier=9 PreemptMode=OFF"};
}

TEST(SlurmFaults, APreemptedJobThatIsCancelledIsRunAgainByTheDriver) {
  const Slurm slurm(PreemptingPartitions("CANCEL"));
  SlurmCli cli;
  Child run = cli.Start({"run", cli.Write({.trainer = "slow=10000",
                                           .slurm = "partition: low, client: tools",
                                           .launch = "retry: {preempted: 3}"})});
  ASSERT_TRUE(cli.WaitForTrainers(1));
  Slurm::Ask({"sbatch", "--partition=high", "--exclusive", "--output=/dev/null", "--wrap=sleep 1"});
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(1, 1);
  EXPECT_EQ(cli.Statuses(), "infrastructure ok");
  EXPECT_EQ(cli.Of("reason", "infrastructure"), "preempted");
  EXPECT_EQ(cli.Evidence("slurm_state", "infrastructure"), "PREEMPTED");
}

TEST(SlurmFaults, APreemptedJobThatIsRequeuedGoesOnUnderItsId) {
  const Slurm slurm(PreemptingPartitions("REQUEUE"));
  SlurmCli cli;
  Child run =
      cli.Start({"run", cli.Write({.trainer = "slow=10000", .slurm = "partition: low, requeue: true, client: tools"})});
  ASSERT_TRUE(cli.WaitForTrainers(1));
  Slurm::Ask({"sbatch", "--partition=high", "--exclusive", "--output=/dev/null", "--wrap=sleep 1"});
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(1, 1);
  EXPECT_EQ(cli.Statuses(), "ok");
  EXPECT_EQ(cli.Cell("SELECT evidence ->> '$.restarts' FROM jobs"), "1");
}

class SlurmRefuses : public testing::ThroughAClient {
 protected:
  std::string With(const std::string& settings) const { return settings + ", " + client_; }
};

TEST_P(SlurmRefuses, APartitionThatIsNotThereIsSaidAtOnce) {
  const Slurm slurm;
  SlurmCli cli;
  const auto run = cli.Run({"run", cli.Write({.points = 2, .slurm = With("partition: gpus")})});
  EXPECT_EQ(run.status.exit_code, 3) << run.out << run.err;
  EXPECT_THAT(run.err, HasSubstr("nvalid partition"));
  EXPECT_THAT(run.err, HasSubstr("`sinfo -s` lists partitions"));
  EXPECT_THAT(run.err, HasSubstr("after you fix that: ridgeline run "));
  EXPECT_THAT(run.out, HasSubstr("not submitted, 2 jobs: "));
  EXPECT_THAT(run.out, ::testing::Not(HasSubstr("seed="))) << "it is said once";
  cli.ExpectNothingLeft();
  cli.ExpectOk(cli.Run({"run", cli.Write({.points = 2, .slurm = With("partition: main")})}));
  cli.ExpectOneFinalResultEach(2, 2);
}

TEST_P(SlurmRefuses, APartitionForOthersIsSaidAtOnce) {
  if (AsAnotherUser().empty()) GTEST_SKIP() << "only root can become another user, and root may submit anywhere";
  const Slurm slurm({"--config=EnforcePartLimits=ALL",  // otherwise newer releases accept the job, and never start it
                     "--config=PartitionName=closed Nodes=ALL AllowGroups=root"});
  SlurmCli cli;
  cli.prefix = AsAnotherUser();
  ASSERT_TRUE(ridgeline::Run({"chown", kAnotherUser, cli.dir.path()}).status.ok());
  const auto run = cli.Run({"run", cli.Write({.slurm = With("partition: closed")})});
  if (run.err.find("exec: Permission denied") != std::string::npos) GTEST_SKIP() << "others may not see this build";
  EXPECT_EQ(run.status.exit_code, 3) << run.out << run.err;
  EXPECT_THAT(run.err, HasSubstr("not permitted to use this partition"));
  EXPECT_THAT(run.err, HasSubstr("for leave to submit there"));
}

TEST_P(SlurmRefuses, MoreThanAnyNodeHasIsSaidAtOnce) {
  const Slurm slurm;
  SlurmCli cli;
  const auto run = cli.Run({"run", cli.Write({.slurm = With("memory: 100GB")})});
  EXPECT_EQ(run.status.exit_code, 3) << run.out << run.err;
  EXPECT_THAT(run.err, HasSubstr("ask for less"));
  cli.ExpectNothingLeft();
}

TEST_P(SlurmRefuses, AHeldJobIsSaidToBeHeldAndRunsWhenReleased) {
  const Slurm slurm({"--config=PartitionName=later Nodes=ALL State=DOWN"});
  SlurmCli cli;
  Child run = cli.Start({"run", cli.Write({.slurm = With("partition: later")})});
  ASSERT_TRUE(Eventually([] { return !Slurm::Jobs().empty(); }));
  Slurm::Ask({"scontrol", "hold", OnlyJob().substr(0, OnlyJob().find('_'))});
  Slurm::Ask({"scontrol", "update", "PartitionName=later", "State=UP"});
  EXPECT_TRUE(cli.WaitToRead(run, "held by")) << ReadFile(cli.dir / "out");
  EXPECT_THAT(ReadFile(cli.dir / "out"), HasSubstr("waits: "));
  Slurm::Ask({"scontrol", "release", OnlyJob().substr(0, OnlyJob().find('_'))});
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(1, 1);
}

TEST_P(SlurmRefuses, ANodeThatIsDownIsSaidAndWaitedFor) {
  const Slurm slurm({"--config=ReturnToService=0"});  // it stays down when it answers
  SlurmCli cli;
  Slurm::Ask({"scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=test"});
  Child run = cli.Start({"run", cli.Write({.slurm = With("nodelist: n2")})});
  EXPECT_TRUE(cli.WaitToRead(run, "waits: ")) << ReadFile(cli.dir / "out");
  EXPECT_THAT(ReadFile(cli.dir / "out"), HasSubstr("sinfo -R"));
  Slurm::Ask({"scontrol", "update", "NodeName=n2", "State=RESUME"});
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(1, 1);
  EXPECT_EQ(cli.Cell("SELECT evidence ->> '$.node' FROM jobs"), "n2");
}

// A limit that refuses permanently, unlike those that pass as jobs end.
TEST_P(SlurmRefuses, ALimitOfTheQosThatDeniesIsNamedAtOnce) {
  const Slurm slurm({"--accounting", "--config=AccountingStorageEnforce=associations,limits,qos"});
  Slurm::Ask({"sacctmgr", "-i", "add", "account", "bench"});
  Slurm::Ask({"sacctmgr", "-i", "add", "user", "root", "account=bench"});
  Slurm::Ask({"sacctmgr", "-i", "modify", "qos", "normal", "set", "Flags=DenyOnLimit", "MaxWall=1"});
  SlurmCli cli;
  const auto sweep = cli.Write({.points = 3, .slurm = With("time: 5m")});
  auto run = cli.Run({"run", sweep});
  EXPECT_NE(run.status.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("QOSMaxWallDurationPerJobLimit"));
  EXPECT_THAT(run.err, HasSubstr("sacctmgr show qos"));
  cli.ExpectNothingLeft();
  Slurm::Ask({"sacctmgr", "-i", "modify", "qos", "normal", "set", "MaxWall=-1", "MaxSubmitJobsPerUser=0"});
  run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 3) << run.out << run.err;
  EXPECT_THAT(run.err, HasSubstr("Slurm refuses the job: QOSMaxSubmitJobPerUserLimit"));
  Slurm::Ask({"sacctmgr", "-i", "modify", "qos", "normal", "set", "MaxSubmitJobsPerUser=2"});
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectOneFinalResultEach(3, 3);
}

// An administrator lowers a limit for a moment.
TEST_P(SlurmRefuses, ALimitThatIsLoweredForSecondsCostsNothing) {
  const Slurm slurm;
  SlurmCli cli;
  Slurm::Ask({"scontrol", "update", "PartitionName=main", "MaxTime=1"});
  Child run = cli.Start({"run", cli.Write({.slurm = With("time: 5m")})});
  EXPECT_TRUE(cli.WaitToRead(run, "waits: it asks for more time than its partition gives"));
  Slurm::Ask({"scontrol", "update", "PartitionName=main", "MaxTime=INFINITE"});
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(1, 1);
}

// `doctor` asks Slurm itself, and submits nothing.
TEST_P(SlurmRefuses, DoctorSaysAtItsLineWhatSlurmWouldRefuse) {
  const Slurm slurm;
  SlurmCli cli;
  const auto sound = cli.Run({"doctor", cli.Write({.slurm = With("partition: main")})});
  EXPECT_EQ(sound.status.exit_code, 0) << sound.out << sound.err;
  const auto wrong = cli.Run({"doctor", cli.Write({.slurm = With("partition: nowhere")})});
  EXPECT_EQ(wrong.status.exit_code, 3) << wrong.out << wrong.err;
  EXPECT_THAT(wrong.out,
              ::testing::ContainsRegex("yaml:8:[0-9]+: launcher slurm: launch: slurm: partition is 'nowhere': "
                                       "Slurm would refuse the job: .*Invalid partition name specified"));
  EXPECT_THAT(wrong.out, HasSubstr("`sinfo -s` lists partitions"));
  EXPECT_THAT(cli.Run({"doctor", cli.Write({.slurm = With("constraint: gold")})}).out,
              HasSubstr("launch: slurm: constraint is 'gold': Slurm would refuse the job: "));
  EXPECT_TRUE(Slurm::Jobs().empty());
}

bool HasPlugin(const std::string& name) {
  const auto found =
      ridgeline::Run({"sh", "-c", "ls /usr/lib*/slurm*/\"$0\" /usr/lib/*/slurm*/\"$0\" 2>/dev/null", name});
  return !found.stdout_text.empty();
}

// A site's job_submit.lua refuses jobs without an account, and renames the jobs that it accepts.
TEST_P(SlurmRefuses, ASitesOwnRuleIsToldInItsWordsAndARenamedJobIsFollowed) {
  if (!HasPlugin("job_submit_lua.so")) GTEST_SKIP() << "this Slurm has no job_submit/lua";
  const TempDir site;
  WriteFile(site / "job_submit.lua",
            "function slurm_job_submit(job, partitions, uid)\n"
            "  if job.account == nil then slurm.log_user('Name an account, and try again') return slurm.ERROR end\n"
            "  job.name = 'renamed'\n"
            "  return slurm.SUCCESS\n"
            "end\n"
            "function slurm_job_modify(job, record, partitions, uid) return slurm.SUCCESS end\n"
            "return slurm.SUCCESS\n");
  const Slurm slurm({"--nodes=1", "--job-submit=" + (site / "job_submit.lua").string()});
  SlurmCli cli;
  const auto run = cli.Run({"run", cli.Write({.points = 2, .slurm = client_})});
  EXPECT_EQ(run.status.exit_code, 3) << run.out << run.err;
  EXPECT_THAT(run.err, HasSubstr("Slurm refuses the job: Name an account, and try again\n"));
  cli.ExpectOk(cli.Run({"run", cli.Write({.points = 2, .slurm = With("account: any")})}));
  cli.ExpectEachRanOnce(2);
}

INSTANTIATE_TEST_SUITE_P(Through, SlurmRefuses, ::testing::Values("tools", "agent"),
                         [](const auto& client) { return client.param; });

TEST(SlurmFaults, AnOutputFolderThatIsGoneIsStorageAndThePointIsMeasuredAgain) {
  const Slurm slurm;
  SlurmCli cli;
  Slurm::Ask({"scontrol", "update", "PartitionName=main", "State=DOWN"});
  const auto sweep = cli.Write({.launch = "retry: {storage: 0}"});
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(Eventually([] { return !Slurm::Jobs().empty(); }));
  std::filesystem::remove_all(cli.dir / "ridgeline-out");
  Slurm::Ask({"scontrol", "update", "PartitionName=main", "State=UP"});
  cli.Finish(run);
  EXPECT_EQ(cli.Statuses(), "infrastructure");
  EXPECT_EQ(cli.Of("reason", "infrastructure"), "storage");
  EXPECT_THAT(cli.Of("message", "infrastructure"), HasSubstr("is not there"));
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectOneFinalResultEach(1, 1);
}

// Both ways to run a prolog.
class SlurmProlog : public ::testing::TestWithParam<std::string> {};

TEST_P(SlurmProlog, AFailedPrologOfTheSiteIsAStart) {
  const TempDir site;
  WriteFile(site / "prolog", "#!/bin/sh\n[ -e " + (site / "mended").string() + " ]\n");
  std::filesystem::permissions(site / "prolog", std::filesystem::perms(0755));
  std::filesystem::permissions(site.path(), std::filesystem::perms(0755));
  std::vector<std::string> options = {"--config=Prolog=" + (site / "prolog").string()};
  if (GetParam() == "WithTheNode") options.emplace_back("--config=PrologFlags=Alloc");
  const Slurm slurm(options);
  SlurmCli cli;
  const auto sweep = cli.Write({.launch = "retry: {start: 0}"});
  cli.Run({"run", sweep});
  EXPECT_EQ(cli.Statuses(), "infrastructure");
  EXPECT_EQ(cli.Of("reason", "infrastructure"), "start");
  // Some releases say only that the job was cancelled.
  EXPECT_THAT(cli.Of("message", "infrastructure") + cli.Of("hint", "infrastructure"), HasSubstr("prolog"));
  EXPECT_THAT(cli.Evidence("node", "infrastructure"), ::testing::StartsWith("n"));
  WriteFile(site / "mended", "");
  for (const char* node : {"n1", "n2", "n3", "n4"}) {  // nodes that are not drained refuse this
    ridgeline::Run({"scontrol", "update", std::string("NodeName=") + node, "State=RESUME"});
  }
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectOneFinalResultEach(1, 1);
}

INSTANTIATE_TEST_SUITE_P(Run, SlurmProlog, ::testing::Values("BeforeTheScript", "WithTheNode"),
                         [](const auto& when) { return when.param; });

// A sweep whose jobs find every node faulty while the file `bad` is in its folder.
std::string UnlessBad(const SlurmCli& cli) {
  return fmt::format("client: tools, prolog: ['test ! -e {} || {{ trap - EXIT; not_started node \"no folder\"; }}']",
                     (cli.dir / "bad").string());
}

TEST(SlurmFaults, IfEveryNodeIsSetAsideTheRunEndsAndNamesThem) {
  const Slurm slurm({"--nodes=2"});
  SlurmCli cli;
  WriteFileAtomic(cli.dir / "bad", "");
  const auto sweep = cli.Write({.points = 6,
                                .slurm = "exclusive: true, " + UnlessBad(cli),
                                .launch = "launcher_timeout: 5s\n  retry: {node: 9}"});
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 3) << run.out << run.err;
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("6 of 6 points have no result; it stopped when 5 jobs in a row failed alike"),
                    HasSubstr("set aside: n1, where "), HasSubstr("n2, where "), HasSubstr("run them again with: ")));
  cli.ExpectNothingLeft();
  std::filesystem::remove(cli.dir / "bad");
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectEachRanOnce(6);
}

TEST(SlurmFaults, ANodeThatWasSetAsideIsUsedAgainWhereTheOthersAreDrained) {
  const Slurm slurm({"--nodes=2"});
  SlurmCli cli;
  WriteFileAtomic(cli.dir / "bad", "");
  Slurm::Ask({"scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test"});
  Child run = cli.Start({"run", cli.Write({.points = 4,
                                           .slurm = UnlessBad(cli),
                                           .launch = "launcher_timeout: 5s\n  give_up_after: 0\n  retry: {node: 9}"})});
  ASSERT_TRUE(cli.WaitToRead(run, "n1 is set aside, as long as others can take jobs: 2 jobs failed on it"));
  std::filesystem::remove(cli.dir / "bad");
  const auto output = cli.Finish(run);
  cli.ExpectOk(output);
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("waits: the nodes it may go to are not available"), HasSubstr("n1 is used again")));
  cli.ExpectEachRanOnce(4);
}

TEST(SlurmFaults, ATrainerThatCannotStartDidNotCrash) {
  const Slurm slurm;
  for (const auto& [settings, words] :
       {std::pair{"prolog: ['ls /no/such']", "ls /no/such"}, std::pair{"modules: [cuda]", "module"},
        std::pair{"container: ubuntu, container_runtime: pyxis", "pyxis is not installed"}}) {
    SlurmCli cli;
    cli.Run({"run", cli.Write({.slurm = std::string("client: tools, ") + settings, .launch = "retry: {start: 0}"})});
    EXPECT_EQ(cli.Statuses(), "infrastructure") << settings;
    EXPECT_EQ(cli.Of("reason", "infrastructure"), "start") << settings;
    EXPECT_THAT(cli.Of("message", "infrastructure"), HasSubstr(words));
    EXPECT_EQ(cli.Starts(), 0);
  }
}

// The terminal's Ctrl-C, in the middle of a submission.
TEST(SlurmFaults, ASecondCtrlCOrAClosedTerminalLeavesTheJobs) {
  const Slurm slurm;
  SlurmCli cli;
  const auto sweep = cli.Write({.points = 4, .trainer = "slow=8000"});
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(cli.WaitForTrainers(4));
  run.Signal(SIGHUP);
  const auto left = cli.Finish(run);
  EXPECT_THAT(left.out, HasSubstr("4 jobs go on by themselves"));
  EXPECT_EQ(Slurm::JobsThatAre("RUNNING"), 4);
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectEachRanOnce(4);
}

TEST(SlurmFaults, AJobDirectoryThatCannotBeWrittenIsAFailureWithTheJobsOwnWords) {
  const Slurm slurm;
  SlurmCli cli;
  cli.prefix = AsAnotherUser();  // root may write anywhere
  if (!cli.prefix.empty()) ridgeline::Run({"chown", kAnotherUser, cli.dir.path()});
  Slurm::Ask({"scontrol", "update", "PartitionName=main", "State=DOWN"});
  Child run = cli.Start({"run", cli.Write({.launch = "retry: {storage: 0}"})});
  ASSERT_TRUE(Eventually([&] { return !Slurm::Jobs().empty() || run.Poll(); }));
  for (const auto& job : std::filesystem::directory_iterator(cli.dir / "ridgeline-out/jobs")) {
    std::filesystem::permissions(job, std::filesystem::perms(0555));
  }
  Slurm::Ask({"scontrol", "update", "PartitionName=main", "State=UP"});
  const auto output = cli.Finish(run);
  EXPECT_EQ(output.status.exit_code, 3) << output.out << output.err;
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status <> 'infrastructure'"), 0) << cli.Statuses();
  EXPECT_EQ(cli.Evidence("slurm_state", "infrastructure"), "FAILED") << output.out << output.err;
  EXPECT_THAT(cli.Evidence("log_tail", "infrastructure"), HasSubstr("Permission denied"));
}

TEST(SlurmFaults, AJobWhoseFileIsGoneIsAFailureWithTheJobsOwnWords) {
  const Slurm slurm;
  SlurmCli cli;
  Slurm::Ask({"scontrol", "update", "PartitionName=main", "State=DOWN"});
  Child run = cli.Start({"run", cli.Write({})});
  ASSERT_TRUE(Eventually([] { return !Slurm::Jobs().empty(); }));
  for (const auto& job : std::filesystem::directory_iterator(cli.dir / "ridgeline-out/jobs")) {
    std::filesystem::remove_all(job);
  }
  Slurm::Ask({"scontrol", "update", "PartitionName=main", "State=UP"});
  const auto output = cli.Finish(run);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'crashed'"), 0) << output.out << output.err;
  EXPECT_EQ(cli.Evidence("slurm_state", "infrastructure"), "FAILED");
  EXPECT_THAT(cli.Evidence("log_tail", "infrastructure"), HasSubstr("job.json"));
}

}  // namespace
}  // namespace ridgeline
