// The meaning of Slurm's words and numbers: states, reasons to wait, refusals, and the last words of a job.
#include "slurm/meaning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace ridgeline::slurm {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SlurmState : public ::testing::TestWithParam<Meaning> {};

// Every state of Slurm is one of ours: a phase, and for an end one that the contract allows a scheduler to know.
TEST_P(SlurmState, MeansOneOfOurs) {
  const Meaning& meaning = GetParam();
  EXPECT_EQ(MeaningOf(meaning.state).state, meaning.state);
  EXPECT_EQ(meaning.phase != plugin::Phase::kEnded || meaning.state == "COMPLETED", meaning.message.empty());
  EXPECT_EQ(meaning.end.empty(), meaning.message.empty() || meaning.state == "FAILED");
  if (meaning.end.empty()) return;
  constexpr std::array<std::string_view, 4> kASchedulers = {"timeout", "oom_host", "cancelled", "infrastructure"};
  constexpr std::array<std::string_view, 9> kReasons = {"",      "node",   "start",     "storage", "image",
                                                        "limit", "rights", "preempted", "lost"};
  EXPECT_TRUE(std::ranges::count(kASchedulers, meaning.end.name)) << "whether a trainer is at fault exec alone knows";
  EXPECT_TRUE(std::ranges::count(kReasons, meaning.end.reason));
  EXPECT_EQ(meaning.end.name == "infrastructure", !meaning.end.reason.empty());
}
INSTANTIATE_TEST_SUITE_P(All, SlurmState, ::testing::ValuesIn(Meanings()), [](const auto& info) {
  std::string name(info.param.state);
  std::erase(name, '_');
  return name;
});

// libslurm's own list (enum job_states and the flags beside it). A release that adds a state fails here.
TEST(SlurmMeaning, KnowsEveryStateThatSlurmPrints) {
  for (const char* state :
       {"PENDING",       "RUNNING",       "SUSPENDED",     "COMPLETED", "CANCELLED", "FAILED",
        "TIMEOUT",       "NODE_FAIL",     "PREEMPTED",     "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY",
        "COMPLETING",    "CONFIGURING",   "RESIZING",      "REVOKED",   "REQUEUED",  "REQUEUE_FED",
        "REQUEUE_HOLD",  "SPECIAL_EXIT",  "SIGNALING",     "STAGE_OUT", "STOPPED",   "RESV_DEL_HOLD",
        "LAUNCH_FAILED", "RECONFIG_FAIL", "POWER_UP_NODE", "UPDATE_DB", "EXPEDITING"}) {
    EXPECT_EQ(MeaningOf(state).state, state);
  }
  EXPECT_EQ(MeaningOf("A_STATE_OF_2030").phase, plugin::Phase::kRunning);
}

TEST(SlurmMeaning, ANodeFailureIsTheInfrastructures) {
  EXPECT_EQ(MeaningOf("NODE_FAIL").end, Infrastructure("node"));
  EXPECT_EQ(MeaningOf("BOOT_FAIL").end, Infrastructure("node"));
  EXPECT_EQ(MeaningOf("LAUNCH_FAILED").end, Infrastructure("start"));
  EXPECT_EQ(MeaningOf("PREEMPTED").end, Infrastructure("preempted"));
  EXPECT_EQ(MeaningOf("REVOKED").end, Infrastructure("lost"));
}

// ---- waits

TEST(SlurmMeaning, TellsWhyAJobWaits) {
  for (const char* turn : {"", "None", "Resources", "Priority", "JobArrayTaskLimit", "Dependency", "BeginTime"}) {
    EXPECT_EQ(WaitOf(turn), nullptr) << turn;
  }
  for (const char* known :
       {"JobHeldUser", "JobHeldAdmin", "PartitionDown", "Reservation", "Licenses",
        "ReqNodeNotAvail, UnavailableNodes:n1",
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
        "QOSMaxJobsPerUserLimit", "QOSGrpCpuLimit", "QOSMaxCpuPerUserLimit", "QOSUsageThreshold",
        "AssocGrpCPUMinutesLimit", "AssocMaxJobsLimit", "AssocGrpNodeLimit", "AssociationJobLimit",
        "AccountingPolicy"}) {
    ASSERT_NE(WaitOf(known), nullptr) << known;
    EXPECT_TRUE(WaitOf(known)->end.empty()) << known << " may pass";
    EXPECT_FALSE(WaitOf(known)->hint.empty()) << known;
  }
}

TEST(SlurmMeaning, TellsWhereNoNodeIsLeft) {
  // In the words of releases 22.05 and 26.05 when the other nodes are drained.
  for (const char* none :
       {"ReqNodeNotAvail, UnavailableNodes:n[2-3]", "ReqNodeNotAvail, May be reserved for other job"}) {
    EXPECT_TRUE(WaitOf(none)->no_node) << none;
  }
  for (const char* passes :
       {"NodeDown", "PartitionDown", "ReqNodeNotAvail, Reserved for maintenance",
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"}) {
    EXPECT_FALSE(WaitOf(passes)->no_node) << passes;
  }
}

// Slurm shows the reason of the partition that it looked at last.
TEST(SlurmMeaning, AnObstacleInOneOfSeveralPartitionsIsNoReasonToGiveUp) {
  for (const char* of_one : {"PartitionTimeLimit", "AccountNotAllowed", "BadConstraints", "QOSMaxCpuPerJobLimit",
                             "uid 1 not in group permitted to use this partition (p)."}) {
    EXPECT_TRUE(IsHopeless(*WaitOf(of_one), "a")) << of_one;
    EXPECT_FALSE(IsHopeless(*WaitOf(of_one), "a,b")) << of_one;
  }
  EXPECT_TRUE(IsHopeless(*WaitOf("DependencyNeverSatisfied"), "a,b")) << "it is the job's own";
  EXPECT_FALSE(IsHopeless(*WaitOf("JobHeldUser"), "a"));
}

TEST(SlurmMeaning, TellsWhatAJobWaitsForInVain) {
  const std::pair<const char*, const char*> hopeless[] = {
      {"BadConstraints", "limit"},
      {"PartitionTimeLimit", "limit"},
      {"PartitionNodeLimit", "limit"},
      {"PartitionConfig", "limit"},
      {"QOSMaxWallDurationPerJobLimit", "limit"},
      {"QOSMaxCpuPerJobLimit", "limit"},
      {"QOSMinCpuNotSatisfied", "limit"},
      {"AssocMaxNodePerJobLimit", "limit"},
      {"AssocMaxCpuMinutesPerJobLimit", "limit"},
      {"InvalidAccount", "rights"},
      {"AccountNotAllowed", "rights"},
      {"uid 1 not in group permitted to use this partition (p).", "rights"},
      {"InvalidQOS", "rights"},
      {"QOSNotAllowed", "rights"},
      {"ReservationDeleted", "rights"},
      {"DependencyNeverSatisfied", "start"},
      {"launch failed requeued held", "start"},
      {"launch_failed_requeued_held", "start"},
      {"JobHoldMaxRequeue", "start"}};
  for (const auto& [reason, expected] : hopeless) {
    ASSERT_NE(WaitOf(reason), nullptr) << reason;
    EXPECT_EQ(WaitOf(reason)->end, Infrastructure(expected)) << reason;
  }
}

// ---- causes

TEST(SlurmMeaning, FindsTheCauseOfAFailure) {
  const std::tuple<const char*, const char*, const char*> known[] = {
      {"ridgeline: n2: not started (node): the folder /out is not there\n", "node", "n2"},
      {"words\nridgeline: n2: not started (start): the module x does not load: no such\nmore words\n", "start", "n2"},
      {"slurmstepd-n1: error: execve(): /spool/job00017/slurm_script: No such file or directory\n", "node", ""},
      {"srun: error: Task launch for StepId=3.0 failed on node n2: Communication connection failure\n", "node", "n2"},
      {"slurmstepd-n1: error: couldn't chdir to `/out': No such file or directory: going to /tmp instead\n", "node",
       ""},
      {"srun: unrecognized option '--container-image=x'\nTry \"srun --help\" for more information\n", "start", ""},
      {"slurmstepd: error: pyxis: child 4 failed with error code: 1\n"
       "slurmstepd: error: pyxis: failed to import docker image\n",
       "image", ""},
      {"slurmstepd: error: pyxis: couldn't join cgroup\n", "start", ""},
      {"FATAL:   Unable to handle docker://nothing uri: while building SIF\n", "image", ""},
      {"slurmstepd-n2: error: execve(): /opt/ridgeline: No such file or directory\n", "start", ""},
      {"Error running slurm prolog: 1\n", "start", ""},
  };
  for (const auto& [log, reason, node] : known) {
    const Cause cause = CauseOf(1 << 8, "NonZeroExitCode", log);
    EXPECT_EQ(cause.reason, reason) << log;
    EXPECT_EQ(cause.node, node) << log;
    EXPECT_FALSE(cause.message.empty());
  }
  EXPECT_EQ(CauseOf(4021, "JobLaunchFailure", "").reason, "node") << "Slurm could not make the log";
  EXPECT_EQ(CauseOf(4022, "None", "").reason, "start") << "a prolog failed";
  EXPECT_EQ(CauseOf(4020, "JobLaunchFailure", "").reason, "start");
  for (const char* log : {"", "something went wrong\n", "ridgeline: n2: not started (ok): trust me\n",
                          "my words: ridgeline: n2: not started (start): no\n", "ridgeline: cannot read job.json\n"}) {
    EXPECT_THAT(CauseOf(1 << 8, "NonZeroExitCode", log).reason, IsEmpty()) << log;
  }
}

TEST(SlurmMeaning, TellsWhatSrunSaid) {
  // As 22.05 prints them.
  EXPECT_EQ(CauseOf(1 << 8, "NonZeroExitCode", "srun: error: Unable to create step for job 7: Invalid MPI\n").reason,
            "start");
  EXPECT_EQ(
      CauseOf(1 << 8, "NonZeroExitCode", "srun: error: Couldn't find the specified plugin name for mpi/pmix\n").reason,
      "start");
  EXPECT_EQ(
      SrunsWords(
          "srun: error: a\nsrun: error: n1: task 0: Exited with exit code 1\nsrun: error: Terminating StepId=7.0\n"),
      "srun: error: a");
  EXPECT_EQ(SrunsWords("my srun: error: a\nsrun: job 7 queued\n"), "");
}

// In the words of 22.05. The second is for SLURM_CONF without a file, the third for no configuration at all.
TEST(SlurmMeaning, SaysInASentenceWhatThisMachineLacks) {
  EXPECT_THAT(MissingHere("If munged is up, restart with --num-threads=10; Munge encode failed: Failed to access "
                          "\"/run/munge/munge.socket.2\": No such file or directory (Did you start munged?)"),
              HasSubstr("munged does not answer on this machine"));
  for (const char* conf :
       {"ridgeline-slurm-agent has ended: ridgeline-slurm-agent: cannot read SLURM_CONF=/x: No such file or directory",
        "ClusterName needs to be specified; scontrol: fatal: Unable to process configuration file",
        "fetch_config: DNS SRV lookup failed; scontrol: fatal: Could not establish a configuration source"}) {
    EXPECT_THAT(MissingHere(conf), HasSubstr("no slurm.conf")) << conf;
  }
  EXPECT_EQ(MissingHere("Unable to contact slurm controller (connect failure)"), "");
}

TEST(SlurmMeaning, APrologFailedWhereNothingCameAfterItsWords) {
  const auto reason = [](const char* log) { return CauseOf(0, "None", log).reason; };
  EXPECT_EQ(reason("Error running slurm prolog: 1\n"), "start");
  EXPECT_EQ(reason("words\nError running slurm prolog: 256"), "start");
  EXPECT_EQ(reason("Error running slurm prolog: 1\nslurmstepd: error: *** JOB 7 CANCELLED AT 2026-11-24 ***\n"), "");
  EXPECT_EQ(reason(""), "");
}

// ---- refusals

// Only a clear refusal is one. After anything else the submission may have succeeded.
TEST(SlurmMeaning, TellsRefusalsFromSilence) {
  const auto of = [](const char* words) { return TroubleOf(0, words); };
  EXPECT_EQ(of("sbatch: error: Batch job submission failed: Invalid partition name specified"), Trouble::kRefused);
  EXPECT_EQ(TroubleOf(2000, ""), Trouble::kRefused);
  for (const char* unclear :
       {"", "Socket timed out on send/recv operation", "Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Unspecified error", "Zero Bytes were transmitted or received",
        "sbatch: error: Batch job submission failed: Protocol authentication error", "Interrupted system call",
        "sbatch: error: slurm_receive_msg: Zero Bytes were transmitted or received\n"
        "sbatch: error: Batch job submission failed: Unspecified error",
        "sbatch: welcome\nsbatch: error: Batch job submission failed: Unspecified error"}) {
    EXPECT_EQ(of(unclear), Trouble::kNoAnswer) << unclear;
  }
  for (const int64_t code : {-1, 4, 5, 104, 110, 1800, 5004, 6000}) {
    EXPECT_EQ(TroubleOf(code, "words"), Trouble::kNoAnswer) << code;
  }
  for (const int64_t code : {11, 2007, 2016, 2106}) EXPECT_EQ(TroubleOf(code, "words"), Trouble::kBusy) << code;
  EXPECT_EQ(of("sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying"), Trouble::kBusy);
}

// Slurm has one message for limits that pass as jobs end and for limits that never do. The words before it tell them
// apart.
TEST(SlurmMeaning, ALimitOnJobsInTheQueuePassesAndAnyOtherIsARefusal) {
  const std::string policy =
      "Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time "
      "limits)";
  for (const char* passes : {"QOSMaxSubmitJobPerUserLimit", "AssocMaxSubmitJobLimit", "AssocGrpSubmitJobsLimit"}) {
    EXPECT_EQ(TroubleOf(0, passes + ("; " + policy)), Trouble::kBusy) << passes;
    EXPECT_EQ(TroubleOf(2050, policy + "; " + passes), Trouble::kBusy) << passes;
  }
  for (const char* stays : {"QOSMaxWallDurationPerJobLimit", "AssocMaxNodePerJobLimit", "QOSMaxGRESPerJob"}) {
    EXPECT_EQ(TroubleOf(0, stays + ("; " + policy)), Trouble::kRefused) << stays;
    EXPECT_EQ(TroubleOf(2050, policy + "; " + stays), Trouble::kRefused) << stays;
  }
  EXPECT_EQ(RefusalOf(policy).reason, "limit");
  EXPECT_THAT(RefusalOf(policy).hint, HasSubstr("sacctmgr"));
}

TEST(SlurmMeaning, MakesOneSentenceOfWhatAToolPrints) {
  EXPECT_EQ(WordsOf("sbatch: error: Line one\nsbatch: error: Line two\n"
                    "sbatch: error: Batch job submission failed: Invalid qos specification\n"),
            "Line one; Line two; Invalid qos specification");
  EXPECT_EQ(WordsOf("sbatch: error: Batch job submission failed: Unspecified error\n"), "Unspecified error");
  EXPECT_EQ(WordsOf("a b: error: c\n\na b: error: c\n"), "a b: error: c");
  EXPECT_EQ(WordsOf(""), "");
}

TEST(SlurmMeaning, SaysThatMinutesAreUsedUp) {
  for (const char* used_up : {"AssocGrpCPUMinutesLimit", "QOSGrpGRESMinutes", "AssocGrpBillingMinutes"}) {
    EXPECT_THAT(WaitOf(used_up)->message, HasSubstr("are used up")) << used_up;
  }
  for (const char* passes : {"AssocGrpCPURunMinutesLimit", "QOSGrpCpuLimit", "AssocMaxCpuMinutesPerJobLimit"}) {
    EXPECT_THAT(WaitOf(passes)->message, Not(HasSubstr("used up"))) << passes;
  }
}

TEST(SlurmMeaning, SaysWhoseARefusalIsAndWhatToDo) {
  const std::pair<const char*, const char*> known[] = {
      {"Invalid partition name specified", "rights"},
      {"Invalid account or account/partition combination specified", "rights"},
      {"Invalid qos specification", "rights"},
      {"User's group not permitted to use this partition", "rights"},
      {"Access/permission denied", "rights"},
      {"Requested node configuration is not available", "limit"},
      {"Requested time limit is invalid (missing or exceeds some limit)", "limit"}};
  for (const auto& [words, reason] : known) {
    EXPECT_EQ(RefusalOf(words).reason, reason) << words;
    EXPECT_FALSE(RefusalOf(words).hint.empty()) << words;
  }
  EXPECT_EQ(RefusalOf("who knows").reason, "start");
  EXPECT_THAT(RefusalOf("who knows").hint, IsEmpty());
}

}  // namespace
}  // namespace ridgeline::slurm
