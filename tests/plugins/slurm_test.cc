// The pure halves of the Slurm launcher, and its session on a Slurm that a test scripts. tests/cluster has the real
// one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <memory>
#include <regex>
#include <utility>

#include "base/files.h"
#include "base/process.h"
#include "run/result.h"
#include "slurm/config.h"
#include "slurm/parse.h"
#include "slurm/render.h"
#include "tests/base/temp_dir.h"
#include "tests/plugins/slurm_job.h"

namespace ridgeline::slurm {
namespace {

using plugin::Failure;
using plugin::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Options Read(const Json& slurm) { return ReadOptions({{"slurm", slurm}}); }

// ---- launch: slurm:

TEST(SlurmConfig, TakesEverySettingThereIs) {
  const Options options = ReadOptions({{"max_parallel", 8},
                                       {"slurm",
                                        {{"partition", "gpu"},
                                         {"account", "llm"},
                                         {"qos", "high"},
                                         {"reservation", "week 12"},
                                         {"constraint", "h200&ib"},
                                         {"nodelist", "n[1-2]"},
                                         {"nodes", 2},
                                         {"ntasks", 2},
                                         {"cpus", 96},
                                         {"memory", "1.5GiB"},
                                         {"gpus", 8},
                                         {"gres", "nvme:1"},
                                         {"time", "1-02:00:00"},
                                         {"exclusive", true},
                                         {"requeue", true},
                                         {"signal", "B:USR1@300"},
                                         {"container_image", "a b"},
                                         {"prolog", {"module load cuda"}},
                                         {"client", "tools"},
                                         {"sbatch", {{"mail-type", "END"}, {"overcommit", true}}},
                                         {"srun", {{"mpi", "pmix"}}}}}});
  EXPECT_EQ(options.partition, "gpu");
  EXPECT_EQ(options.memory_mib, 1536);
  EXPECT_EQ(options.gres, "gpu:8,nvme:1");
  EXPECT_EQ(options.time_minutes, 26 * 60);
  EXPECT_EQ(options.throttle, 8);
  EXPECT_EQ(options.client, ClientKind::kTools);
  EXPECT_THAT(options.sbatch, ElementsAre("--mail-type=END", "--overcommit"));
  EXPECT_THAT(options.srun, ElementsAre("--mpi=pmix"));
}

TEST(SlurmConfig, PollsForAHundredthOfTheTimeAndNoMoreOftenThanAllowed) {
  const Options usual = Read(Json::object());
  EXPECT_EQ(PollPauseMs(usual, 0), 1000);
  EXPECT_EQ(PollPauseMs(usual, 50), 5000);
  EXPECT_EQ(PollPauseMs(usual, 5000), 30'000);
  EXPECT_EQ(PollPauseMs(Read({{"poll_interval", "10s"}}), 50), 10'000);
  EXPECT_EQ(PollPauseMs(Read({{"poll_interval", "2m"}}), 5000), 120'000);
  EXPECT_EQ(usual.max_queued, 10'000);
  EXPECT_EQ(Read({{"max_queued", 500}}).max_queued, 500);
}

TEST(SlurmConfig, ReadsTimesAsSweepsAndAsSlurmWriteThem) {
  const auto minutes = [](const Json& time) { return Read({{"time", time}}).time_minutes; };
  EXPECT_EQ(minutes(90), 2);  // rounded up: Slurm counts minutes
  EXPECT_EQ(minutes("90s"), 2);
  EXPECT_EQ(minutes("30m"), 30);
  EXPECT_EQ(minutes("2h"), 120);
  EXPECT_EQ(minutes("1d"), 1440);
  EXPECT_EQ(minutes("10:00"), 10);
  EXPECT_EQ(minutes("02:30:00"), 150);
  EXPECT_EQ(minutes("2-00:00:00"), 2880);
}

TEST(SlurmConfig, RefusesWithTheSettingAndWhatItMustBe) {
  const std::pair<Json, const char*> wrong[] = {
      {{{"nodes", 0}}, "nodes is 0, and must be a whole number from 1"},
      {{{"nodes", "two"}}, "nodes is \"two\""},
      {{{"partition", "a\nb"}}, "must be one line of text"},
      {{{"partition", ""}}, "must be one line of text"},
      {{{"memory", "8 bananas"}}, "a size such as 64GB"},
      {{{"time", "soon"}}, "a time such as 90s"},
      {{{"time", "1:2:3:4"}}, "a time such as 90s"},
      {{{"exclusive", "yes"}}, "must be true or false"},
      {{{"signal", "LOUD@9"}}, "such as USR1@120"},
      {{{"signal", "USR1@0"}}, "such as USR1@120"},
      {{{"client", "mine"}}, "auto, agent or tools"},
      {{{"prolog", {"a\nb"}}}, "a list of shell lines"},
      {{{"sbatch", {{"job-name", "x"}}}}, "job-name cannot be set here"},
      {{{"sbatch", {{"-p", "x"}}}}, "a long option, without its dashes"},
      {{{"partitoin", "gpu"}}, "there is no setting 'partitoin'"},
      {3, "slurm: is a mapping, not 3"},
  };
  for (const auto& [config, message] : wrong) {
    try {
      Read(config);
      ADD_FAILURE() << config << " was taken";
    } catch (const Failure& e) {
      EXPECT_THAT(e.what(), HasSubstr(message)) << config;
      EXPECT_EQ(e.kind(), Failure::Kind::kInvalidInput);
    }
  }
}

// ---- job -> script

std::vector<BatchJob> BundleOf(const std::vector<Json>& jobs, const Options& options = {},
                               const ArrayLimit& limit = {}) {
  return Bundle(jobs, options, limit, "/work", "/logs");
}

TEST(SlurmRender, JobsOfTheSameResourcesAreOneArray) {
  const auto submissions = BundleOf({Job("rl-a"), Job("rl-b", {{"cpus", 4}}), Job("rl-c"), Job("rl-d", {{"cpus", 4}})});
  ASSERT_EQ(submissions.size(), 2U);
  EXPECT_THAT(submissions[0].keys, ElementsAre("rl-a", "rl-c"));
  EXPECT_THAT(submissions[1].keys, ElementsAre("rl-b", "rl-d"));
  EXPECT_THAT(SbatchOptions(submissions[1]),
              ::testing::AllOf(::testing::Contains("--array=0-1"), ::testing::Contains("--cpus-per-task=4")));
}

TEST(SlurmRender, AJobsOwnConfigurationMakesItAnArrayOfItsOwn) {
  Options session = ReadOptions({{"slurm", {{"partition", "small"}, {"account", "llm"}}}});
  session.throttle = 2;
  const Json large = {{"config", {{"max_parallel", 9}, {"slurm", {{"partition", "large"}}}}}, {"nodes", 2}};
  const auto submissions =
      BundleOf({Job("rl-a"), Job("rl-b", large), Job("rl-c"), Job("rl-d", large), Job("rl-e", large)}, session);
  ASSERT_EQ(submissions.size(), 2U);
  EXPECT_THAT(submissions[0].keys, ElementsAre("rl-a", "rl-c"));
  EXPECT_THAT(SbatchOptions(submissions[0]),
              ::testing::IsSupersetOf({"--partition=small", "--account=llm", "--nodes=1"}));
  EXPECT_THAT(submissions[1].keys, ElementsAre("rl-b", "rl-d", "rl-e"));
  EXPECT_THAT(SbatchOptions(submissions[1]),
              ::testing::IsSupersetOf({"--partition=large", "--nodes=2", "--array=0-2%2"}));
  EXPECT_THAT(SbatchFile(submissions[1]), AllOf(Not(HasSubstr("account")), HasSubstr("srun --nodes=2")));
}

TEST(SlurmRender, NodesAreTheJobsUnlessTheLaunchersOwnSettingSaysSo) {
  const Options own = ReadOptions({{"slurm", {{"nodes", 3}}}});
  EXPECT_THAT(SbatchOptions(BundleOf({Job("rl-a", {{"nodes", 2}})}, own)[0]), ::testing::Contains("--nodes=3"));
  EXPECT_THAT(SbatchOptions(BundleOf({Job("rl-a")})[0]), ::testing::Contains("--nodes=1"));
}

TEST(SlurmRender, AJobOfAnotherClientIsRefused) {
  try {
    BundleOf({Job("rl-a", {{"config", {{"slurm", {{"client", "tools"}}}}}})});
    FAIL() << "it was taken";
  } catch (const Failure& e) {
    EXPECT_THAT(e.what(), HasSubstr("slurm: client is the same for all points of a sweep"));
  }
}

TEST(SlurmRender, ArraysKeepUnderTheLimit) {
  std::vector<Json> jobs;
  for (int i = 0; i < 25; ++i) jobs.push_back(Job("rl-" + std::to_string(i)));
  std::vector<size_t> sizes;
  for (const BatchJob& batch : BundleOf(jobs, {}, {10, true})) sizes.push_back(batch.keys.size());
  EXPECT_THAT(sizes, ElementsAre(10, 10, 5));
  const auto alone = BundleOf(jobs, {}, {10, false});
  EXPECT_EQ(alone.size(), 25U);
  EXPECT_THAT(SbatchFile(alone[0]), Not(HasSubstr("--array")));
}

TEST(SlurmRender, AThrottleIsSaidWhereItMatters) {
  Options options;
  options.throttle = 2;
  EXPECT_EQ(ArrayText(BundleOf({Job("rl-a"), Job("rl-b"), Job("rl-c")}, options)[0]), "0-2%2");
  EXPECT_EQ(ArrayText(BundleOf({Job("rl-a")}, options)[0]), "0-0");
}

TEST(SlurmRender, MemoryLeavesRoomForExecAndTimeIsRoundedUp) {
  const BatchJob batch = BundleOf({Job("rl-a", {{"memory_bytes", int64_t{1} << 30}, {"time_limit_s", 61}})})[0];
  EXPECT_EQ(batch.options.memory_mib, 1024 + 64);
  EXPECT_EQ(batch.options.time_minutes, 2);
}

TEST(SlurmRender, AJobThatCanSaveItsStateIsWarnedInTime) {
  const BatchJob plain = BundleOf({Job("rl-a", {{"save_time_s", 120}})})[0];
  EXPECT_THAT(SbatchOptions(plain), ::testing::Contains("--signal=B:10@180"));
  Options two_nodes;
  two_nodes.nodes = 2;  // srun starts it there: the script's own process would not pass the signal on
  EXPECT_THAT(SbatchOptions(BundleOf({Job("rl-a", {{"save_time_s", 120}})}, two_nodes)[0]),
              ::testing::Contains("--signal=10@180"));
  EXPECT_EQ(BundleOf({Job("rl-a")})[0].warning.signal, 0);
}

TEST(SlurmRender, RefusesAFolderThatSlurmCannotWriteInto) {
  EXPECT_THROW(Bundle(Json::array({Job("rl-a")}), {}, {}, "/work", "/lo\\gs"), Failure);
  EXPECT_THROW(Bundle(Json::array({Job("rl-a")}), {}, {}, "/work", "/lo\ngs"), Failure);
  EXPECT_THAT(Bundle(Json::array({Job("rl-a")}), {}, {}, "/work", "/100%")[0].output, StartsWith("/100%%/"));
}

// What runs is what was meant, whatever stands in names and arguments.
TEST(SlurmRender, NothingReachesTheShellUnquoted) {
  const TempDir dir;
  const std::string nasty = "a b'c\"d$HOME`id`;#\\&|<>*?\n-e";
  Options options;
  options.prolog = {"export FROM_PROLOG='a b'"};
  const std::string code = "printf '%s|%s' \"$FROM_PROLOG\" \"$1\" > " + (dir.path() / "out").string();
  const BatchJob batch =
      Bundle(Json::array({Job("rl-a", {{"sweep", nasty}, {"exec", {"/bin/sh", "-c", code, "sh", nasty}}})}), options,
             {}, dir.path().string(), dir.path().string())[0];
  const std::string file = SbatchFile(batch);
  std::istringstream lines(file);
  for (std::string line; std::getline(lines, line) && line != "exec \"$@\"";) {
    if (!line.starts_with("#SBATCH")) continue;
    EXPECT_TRUE(std::regex_match(line, std::regex("#SBATCH (--[^ \"']+|\"--.*\")"))) << line;
  }
  WriteFileAtomic(dir.path() / "script", file);
  SpawnOptions spawn;
  spawn.environment = {{"SLURM_ARRAY_TASK_ID", "0"}};
  EXPECT_TRUE(Child::Spawn({"/bin/bash", dir.path() / "script"}, spawn).Wait().ok());
  EXPECT_EQ(ReadFile(dir.path() / "out"), "a b|" + nasty);
}

TEST(SlurmRender, AScriptRefusesToRunUnderOptionsOfTheEnvironment) {
  const TempDir dir;
  const BatchJob batch = Bundle(Json::array({Job("rl-a")}), {}, {}, dir.path().string(), dir.path().string())[0];
  WriteFileAtomic(dir.path() / "script", SbatchFile(batch));
  SpawnOptions spawn;
  spawn.environment = {{"SBATCH_PARTITION", "debug"}, {"SLURM_ARRAY_TASK_ID", "0"}};
  spawn.stderr_file = dir.path() / "err";
  EXPECT_EQ(Child::Spawn({"/bin/bash", dir.path() / "script"}, spawn).Wait().exit_code, 2);
  EXPECT_THAT(ReadFile(dir.path() / "err"), HasSubstr("SBATCH_PARTITION is set"));
}

BatchJob TwoNodes() {
  Options options;
  options.partition = "gpu";
  options.nodes = 2;
  options.gres = "gpu:8";
  options.container_image = "nvcr.io#nvidia/pytorch:26.09-py3";
  options.srun = {"--mpi=pmix"};
  options.sbatch = {"--mail-type=END"};
  options.exclusive = true;
  options.throttle = 1;
  return BundleOf({Job("rl-a", {{"cpus", 96}, {"time_limit_s", 3600}, {"save_time_s", 120}}),
                   Job("rl-b", {{"cpus", 96}, {"time_limit_s", 3600}, {"save_time_s", 120}})},
                  options)[0];
}

TEST(SlurmRender, IsTheGoldenScript) {
  const std::filesystem::path golden = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "tests/golden/slurm";
  const std::pair<const char*, std::string> files[] = {
      {"one-node.sbatch", SbatchFile(BundleOf({Job("rl-a"), Job("rl-b")})[0])},
      {"two-nodes.sbatch", SbatchFile(TwoNodes())}};
  for (const auto& [name, text] : files) {
    if (std::getenv("RIDGELINE_UPDATE_GOLDENS") != nullptr) WriteFileAtomic(golden / name, text);
    EXPECT_EQ(text, ReadFile(golden / name)) << "RIDGELINE_UPDATE_GOLDENS=1 writes what it is now";
    const Captured checked = ridgeline::Run({"shellcheck", (golden / name).string()});
    EXPECT_TRUE(checked.status.ok()) << checked.stdout_text;
  }
}

// ---- what Slurm says

TEST(SlurmParse, ReadsTaskListsAndWritesThem) {
  EXPECT_THAT(*ParseTasks("4"), ElementsAre(4));
  EXPECT_THAT(*ParseTasks("0-3,7"), ElementsAre(0, 1, 2, 3, 7));
  EXPECT_THAT(*ParseTasks("[1-2,5%2]"), ElementsAre(1, 2, 5));
  EXPECT_THAT(*ParseTasks("12-20:4%2"), ElementsAre(12, 16, 20));
  for (const char* wrong : {"", "a", "3-1", "1-", "-1", "1-99999999", "1:0", "1,,2"})
    EXPECT_FALSE(ParseTasks(wrong)) << wrong;
  EXPECT_EQ(FormatTasks({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(FormatTasks({}), "");
}

TEST(SlurmParse, ReadsTheQueue) {
  const auto rows = ParseSqueue(
      "5|12-40:2%2|PENDING|0|0|1795310371|N/A|N/A||JobArrayTaskLimit|rl-x|\n"
      "5|0|FAILED|768|1|1795310371|1795310372|1795310373|n1|NonZeroExitCode|rl-x|\n"
      "6|N/A|RUNNING|0|0|1795310371|1795310373|NONE|n[1-2]|None|rl-y|\n"
      "7|0|RUNNING|0|0|1|1|1|n1|None|somebody-elses|\n"
      "a line end in a name|\n"
      "8|x|RUNNING|0|0|1|1|1|n1|None|rl-z|\n");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].tasks->size(), 15U);
  EXPECT_EQ(rows[0].reason, "JobArrayTaskLimit");
  EXPECT_EQ(rows[0].started_s, 0);
  EXPECT_EQ(rows[1].exit_status, 768);
  EXPECT_EQ(rows[1].restarts, 1);
  EXPECT_EQ(rows[1].ended_s, 1795310373);
  EXPECT_FALSE(rows[2].tasks);
  EXPECT_EQ(rows[2].nodes, "n[1-2]");
}

TEST(SlurmParse, ReadsTheAccounting) {
  const auto rows = ParseSacct(
      "5_0|FAILED|3:0|1|2|3|n1|rl-x\n5_[4-5%2]|CANCELLED by 1000|0:15|1|None|3||rl-x\n"
      "9|COMPLETED|0:0|1|2|3|n1|rl-y\n"
      "nonsense\n");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].exit_status, 3 << 8);
  EXPECT_EQ(rows[1].state, "CANCELLED");
  EXPECT_EQ(rows[1].exit_status, 15);
  EXPECT_THAT(*rows[1].tasks, ElementsAre(4, 5));
  EXPECT_EQ(rows[2].started_s, 2);
}

TEST(SlurmParse, ReadsTheConfiguration) {
  const Facts facts = ParseConfig(
      "AccountingStorageType   = accounting_storage/slurmdbd\nClusterName             = testc\nMaxArraySize            "
      "= "
      "10001\nMaxJobCount             = 500\nMessageTimeout          = 15 sec\nSLURM_VERSION           = 22.05.8\n");
  EXPECT_EQ(facts.version, "22.05.8");
  EXPECT_EQ(facts.max_array_size, 10001);
  EXPECT_EQ(facts.max_job_count, 500);
  EXPECT_EQ(facts.message_timeout_s, 15);
  EXPECT_TRUE(facts.accounting);
}

class SlurmState : public ::testing::TestWithParam<Meaning> {};

// Every state of Slurm is one of ours: a phase, and for an end one that the contract knows.
TEST_P(SlurmState, MeansOneOfOurs) {
  const Meaning& meaning = GetParam();
  EXPECT_EQ(MeaningOf(meaning.state).state, meaning.state);
  EXPECT_EQ(meaning.phase != plugin::Phase::kEnded || meaning.state == "COMPLETED", meaning.end.empty());
  EXPECT_EQ(meaning.end.empty(), meaning.message.empty());
  if (meaning.end.empty()) return;
  EXPECT_NO_THROW(StatusFromName(meaning.end));
}
INSTANTIATE_TEST_SUITE_P(All, SlurmState, ::testing::ValuesIn(Meanings()), [](const auto& info) {
  std::string name(info.param.state);
  std::erase(name, '_');
  return name;
});

// libslurm's own list (enum job_states and the flags beside it): a release that adds one shows here.
TEST(SlurmParse, KnowsEveryStateThatSlurmPrints) {
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

TEST(SlurmParse, TellsWhyAJobWaits) {
  EXPECT_EQ(WaitOf("Resources"), nullptr);
  EXPECT_EQ(WaitOf("Priority"), nullptr);
  EXPECT_EQ(WaitOf("JobArrayTaskLimit"), nullptr);
  EXPECT_TRUE(WaitOf("JobHeldUser")->end.empty());
  EXPECT_EQ(WaitOf("launch failed requeued held")->end, "node_failed");
  EXPECT_EQ(WaitOf("launch_failed_requeued_held")->end, "node_failed");
  EXPECT_EQ(WaitOf("PartitionTimeLimit")->end, "invalid");
  EXPECT_NE(WaitOf("ReqNodeNotAvail, UnavailableNodes:n1"), nullptr);
}

TEST(SlurmParse, TellsRefusalsFromSilence) {
  EXPECT_EQ(TroubleOf(0, "sbatch: error: Batch job submission failed: Invalid partition name specified"),
            Trouble::kRefused);
  EXPECT_EQ(TroubleOf(2000, ""), Trouble::kRefused);
  EXPECT_EQ(TroubleOf(0, "Socket timed out on send/recv operation"), Trouble::kNoAnswer);
  EXPECT_EQ(TroubleOf(0, "Unable to contact slurm controller (connect failure)"), Trouble::kNoAnswer);
  EXPECT_EQ(TroubleOf(5004, ""), Trouble::kNoAnswer);
  EXPECT_EQ(TroubleOf(11, ""), Trouble::kBusy);
  EXPECT_EQ(TroubleOf(0, "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying"),
            Trouble::kBusy);
  EXPECT_THAT(HintFor("Invalid partition name specified"), HasSubstr("sinfo -s"));
  EXPECT_THAT(HintFor("who knows"), IsEmpty());
}

}  // namespace
}  // namespace ridgeline::slurm
