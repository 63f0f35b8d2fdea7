// The pure parts of the Slurm launcher: settings, submissions, and Slurm's output. Its script, the meaning of Slurm's
// words, its tools and its session have their own tests. tests/cluster has the real Slurm.
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

TEST(SlurmConfig, MemoryOfZeroIsAWholeNode) {
  EXPECT_EQ(Read({{"memory", 0}}).memory_mib, kWholeNode);
  const BatchJob batch =
      Bundle(Json::array({Job("rl-a", {{"memory_bytes", 1 << 30}})}), Read({{"memory", 0}}), {}, "/work", "/logs")[0];
  EXPECT_THAT(SbatchOptions(batch), ::testing::Contains("--mem=0"));
  EXPECT_THAT(SbatchOptions(batch), Not(::testing::Contains(StartsWith("--mem=1"))));
}

// sbatch accepts it only with a number of tasks: "--gpus-per-task used without either --gpus or -n/--ntasks".
TEST(SlurmConfig, GpusPerTaskComeWithANumberOfTasks) {
  for (const int64_t nodes : {1, 2}) {
    const Options options = Read({{"nodes", nodes}, {"sbatch", {{"gpus-per-task", 4}}}});
    const BatchJob batch = Bundle(Json::array({Job("rl-a")}), options, {}, "/work", "/logs")[0];
    EXPECT_THAT(SbatchOptions(batch), ::testing::Contains("--ntasks=" + std::to_string(nodes)));
  }
}

TEST(SlurmConfig, TakesEverySettingThereIs) {
  const Options options = ReadOptions({{"max_parallel", 8},
                                       {"slurm",
                                        {{"partition", "gpu"},
                                         {"account", "llm"},
                                         {"qos", "high"},
                                         {"reservation", "week 12"},
                                         {"constraint", "h200&ib"},
                                         {"nodelist", "n[1-2]"},
                                         {"exclude", "n9"},
                                         {"clusters", "alps"},
                                         {"nodes", 2},
                                         {"ntasks", 2},
                                         {"cpus", 96},
                                         {"memory", "1.5GiB"},
                                         {"gpus", "h100:8"},
                                         {"gpu_bind", "none"},
                                         {"gres", "nvme:1"},
                                         {"time", "1-02:00:00"},
                                         {"exclusive", true},
                                         {"requeue", true},
                                         {"signal", "B:USR1@300"},
                                         {"dependency", "afterok:12:13,afterany:14_3"},
                                         {"mail", "me@example.org"},
                                         {"modules", {"gcc/13.2", "cuda/13.0"}},
                                         {"prolog", {"ulimit -l unlimited"}},
                                         {"container", "/a b"},
                                         {"container_mounts", {"/data", "/a:/b:ro"}},
                                         {"container_runtime", "pyxis"},
                                         {"client", "tools"},
                                         {"sbatch", {{"mail-type", "END"}, {"overcommit", true}}},
                                         {"srun", {{"mpi", "pmix"}}}}}});
  EXPECT_EQ(options.partition, "gpu");
  EXPECT_EQ(options.memory_mib, 1536);
  EXPECT_EQ(options.gpus, "h100:8");
  EXPECT_EQ(options.gres, "nvme:1");
  EXPECT_EQ(options.cluster, "alps");
  EXPECT_EQ(options.dependency, "afterok:12:13,afterany:14_3");
  EXPECT_EQ(options.mail, "me@example.org");
  EXPECT_THAT(options.modules, ElementsAre("gcc/13.2", "cuda/13.0"));
  EXPECT_THAT(options.container_mounts, ElementsAre("/data", "/a:/b:ro"));
  EXPECT_EQ(options.container_runtime, ContainerRuntime::kPyxis);
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
      {{{"gpus", 0}}, "a whole number from 1 to 999999"},
      {{{"gpus", "h100"}}, "such as 8 or \"h100:8\""},
      {{{"gpus", "h100:8,a100:1"}}, "such as 8 or \"h100:8\""},
      {{{"clusters", "a,b"}}, "the name of one cluster"},
      {{{"clusters", "all"}}, "the name of one cluster"},
      {{{"dependency", "afterok"}}, "jobs to wait for"},
      {{{"dependency", "afterok:1?afterok:2"}}, "jobs to wait for"},
      {{{"dependency", "singleton"}}, "jobs to wait for"},
      {{{"container_runtime", "docker"}}, "auto, pyxis or apptainer"},
      {{{"container_mounts", {"data"}}}, "a list of folders"},
      {{{"container_mounts", {"/a,/b"}}}, "a list of folders"},
      {{{"container_mounts", {"/a\n/b"}}}, "a list of folders"},
      {{{"container_mounts", {"/a\r"}}}, "a list of folders"},
      {{{"container_mounts", {"/a:b"}}}, "a list of folders"},
      {{{"container_mounts", {"/a:/b:"}}}, "a list of folders"},
      {{{"container_mounts", {"/a:/b:ro:/c"}}}, "a list of folders"},
      {{{"container_mounts", {"/$(id)"}}}, "a list of folders"},
      {{{"container", "a\nb"}}, "one line of text"},
      {{{"srun", {{"container-env", "A\nB"}}}}, "one line of text"},
      {{{"container", "images/mine.sqsh"}}, "an image, such as"},
      {{{"container", "mine.sif"}}, "an image, such as"},
      {{{"container", "~/mine"}}, "an image, such as"},
      {{{"container", "--nv"}}, "an image, such as"},
      {{{"container", "a b"}}, "an image, such as"},
      {{{"modules", {""}}}, "a list of modules"},
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

TEST(SlurmConfig, AnImageIsOfARegistryOrAFile) {
  for (const char* image : {"ubuntu", "$oauthtoken@nvcr.io#nvidia/x:1", "host:5000/a@sha256:12", "/a b/x.sqsh",
                            "./x.sqsh", "../x.sif", "oras://host/x.sif"}) {
    EXPECT_EQ(Read({{"container", image}}).container, image);
  }
}

// sbatch and srun accept abbreviated options, and a value as the next word.
TEST(SlurmConfig, NoOptionIsHandedOnThatTheLauncherHasOrThatIsNotWrittenInFull) {
  const std::pair<Json, const char*> wrong[] = {
      {{{"job-name", "x"}}, "set by the launcher"},
      {{{"wrap", "rm -rf ."}}, "set by the launcher"},
      {{{"wr", "rm -rf ."}}, "it stands for wrap: write an option in full"},
      {{{"wra", "rm -rf ."}}, "it stands for wrap"},
      {{{"part", "x"}}, "it stands for partition"},
      {{{"p", "x"}}, "write an option in full"},
      {{{"overc", true}}, "it stands for overcommit"},
      {{{"mail-t", "END"}}, "it stands for mail-type"},
      {{{"container-im", "x"}}, "it stands for container-image"},
      {{{"arr", "0-9"}}, "it stands for array"},
      {{{"partition", "x"}}, "say partition:"},
      {{{"exclude", "n1"}}, "say exclude:"},
      {{{"clusters", "x"}}, "say clusters:"},
      {{{"dependency", "afterok:1"}}, "say dependency:"},
      {{{"gpus-per-node", 8}}, "say gpus:"},
      {{{"container-image", "x"}}, "say container:"},
      {{{"help", true}}, "set by the launcher"},
      {{{"-p", "x"}}, "without its dashes"},
      {{{"--partition", "x"}}, "without its dashes"},
      {{{"partition x", true}}, "without its dashes"},
      {{{"nice=5 --partition", "x"}}, "without its dashes"},
      {{{"Partition", "x"}}, "without its dashes"},
      {{{"licenses", true}}, "must be a value"},
      {{{"comment", "a\n#SBATCH --wrap=x"}}, "set by the launcher"},
      {{{"mcs-label", "a\n#SBATCH --wrap=x"}}, "must be one line of text"},
  };
  for (const char* tool : {"sbatch", "srun"}) {
    for (const auto& [options, message] : wrong) {
      try {
        Read({{tool, options}});
        ADD_FAILURE() << options << " was taken";
      } catch (const Failure& e) {
        EXPECT_THAT(std::string(e.what()) + "; " + e.hint(), HasSubstr(message)) << options;
      }
    }
  }
  const Options taken = Read({{"sbatch", {{"nice", true}, {"gpus", "4"}, {"sites-own", "a --wrap=b"}}}});
  EXPECT_THAT(taken.sbatch, ElementsAre("--gpus=4", "--nice", "--sites-own=a --wrap=b")) << "each is one word";
}

// ---- job -> submission

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

TEST(SlurmRender, NamesShowTheSweepAndThePartAndAreUnique) {
  const auto submissions = Bundle(
      Json::array({Job("rl-a", {{"sweep", "night, of 7|8"}}), Job("rl-b", {{"sweep", "night, of 7|8"}, {"cpus", 4}})}),
      {}, {}, "/work", "/logs", 3);
  EXPECT_EQ(submissions[0].job_name, "night--of-7-8.4.rl-a");
  EXPECT_EQ(submissions[1].job_name, "night--of-7-8.5.rl-b");
  EXPECT_THAT(SbatchOptions(submissions[1]), ::testing::Contains("--job-name=night--of-7-8.5.rl-b"));
  EXPECT_EQ(KeyIn(submissions[1].job_name), submissions[1].name);
  for (const char* theirs : {"", "wrap", "rl-a", "demo.rl", "rl-a.sh", "demo.1.x-rl-a"})
    EXPECT_EQ(KeyIn(theirs), "") << theirs;
}

TEST(SlurmRender, NodesThatFailedAreLeftOutUnlessTheyAreAskedFor) {
  const auto submissions =
      BundleOf({Job("rl-a"), Job("rl-b", {{"avoid", {"n1", "n2"}}}), Job("rl-c", {{"avoid", {"n1", "n2"}}})});
  ASSERT_EQ(submissions.size(), 2U);
  EXPECT_EQ(ExcludeText(submissions[0]), "");
  EXPECT_THAT(submissions[1].keys, ElementsAre("rl-b", "rl-c"));
  EXPECT_THAT(SbatchOptions(submissions[1]), ::testing::Contains("--exclude=n1,n2"));
  const Options own = ReadOptions({{"slurm", {{"exclude", "n[7-9]"}, {"nodelist", "n[2-3]"}}}});
  EXPECT_EQ(ExcludeText(BundleOf({Job("rl-a", {{"avoid", {"n1", "n2"}}})}, own)[0]), "n[7-9],n1");
}

TEST(SlurmRender, EverySettingIsItsOption) {
  const Options options = ReadOptions({{"slurm",
                                        {{"clusters", "alps"},
                                         {"gpus", "h100:8"},
                                         {"gpu_bind", "none"},
                                         {"gres", "nvme:1"},
                                         {"dependency", "afterok:12"}}}});
  EXPECT_THAT(SbatchOptions(BundleOf({Job("rl-a")}, options)[0]),
              ::testing::IsSupersetOf({"--clusters=alps", "--gpus-per-node=h100:8", "--gpu-bind=none", "--gres=nvme:1",
                                       "--dependency=afterok:12"}));
}

TEST(SlurmRender, AMailJobWaitsForAllAndDoesNothing) {
  Options options = ReadOptions({{"slurm", {{"mail", "me@example.org"}, {"partition", "gpu"}, {"gpus", 8}}}});
  const BatchJob mail = MailJob(BundleOf({Job("rl-a")}, options)[0], {12, 14});
  EXPECT_THAT(SbatchOptions(mail),
              ::testing::IsSupersetOf({"--job-name=a-sweep.ended", "--dependency=afterany:12:14", "--partition=gpu",
                                       "--mail-type=END", "--mail-user=me@example.org", "--output=/dev/null"}));
  EXPECT_THAT(SbatchFile(mail), AllOf(Not(HasSubstr("gpus")), Not(HasSubstr("array"))));
  EXPECT_EQ(KeyIn(mail.job_name), "");
  options.mail = "true";
  EXPECT_THAT(SbatchFile(MailJob(BundleOf({Job("rl-a")}, options)[0], {})),
              AllOf(Not(HasSubstr("mail-user")), Not(HasSubstr("dependency"))));
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
  two_nodes.nodes = 2;  // srun starts it there; the script's own process would not pass the signal on
  EXPECT_THAT(SbatchOptions(BundleOf({Job("rl-a", {{"save_time_s", 120}})}, two_nodes)[0]),
              ::testing::Contains("--signal=10@180"));
  EXPECT_EQ(BundleOf({Job("rl-a")})[0].warning.signal, 0);
}

TEST(SlurmRender, RefusesAFolderThatSlurmCannotWriteInto) {
  EXPECT_THROW(Bundle(Json::array({Job("rl-a")}), {}, {}, "/work", "/lo\\gs"), Failure);
  EXPECT_THROW(Bundle(Json::array({Job("rl-a")}), {}, {}, "/work", "/lo\ngs"), Failure);
  EXPECT_THAT(Bundle(Json::array({Job("rl-a")}), {}, {}, "/work", "/100%")[0].output, StartsWith("/100%%/"));
}

BatchJob TwoNodes() {
  Options options;
  options.partition = "gpu";
  options.nodes = 2;
  options.gpus = "8";
  options.container = "nvcr.io/nvidia/pytorch:26.09-py3";
  options.srun = {"--mpi=pmix"};
  options.sbatch = {"--mail-type=END"};
  options.exclusive = true;
  options.throttle = 1;
  const Json asked = {{"cpus", 96}, {"time_limit_s", 3600}, {"save_time_s", 120}};
  Json jobs = Json::array({Job("rl-a", asked), Job("rl-b", asked)});
  for (Json& job : jobs) job["job_dir"] = "/out/jobs/" + job.at("key").get<std::string>();
  return Bundle(jobs, options, {}, "/work", "/logs")[0];
}

BatchJob WithModules() {
  const Options options = ReadOptions(
      {{"slurm", {{"modules", {"gcc/13.2", "cuda"}}, {"prolog", {"ulimit -l unlimited", "rm -f /tmp/x || true"}}}}});
  return BundleOf({Job("rl-a", {{"job_dir", "/work/out/jobs/rl-a"}})}, options)[0];
}

// NVIDIA's image on two nodes with eight GPUs each.
BatchJob WithContainer() {
  const Json slurm = {{"partition", "gpu"},
                      {"gpus", 8},
                      {"exclusive", true},
                      {"container", "nvcr.io/nvidia/pytorch:26.09-py3"},
                      {"container_mounts", {"/lustre/data:/data:ro", "/lustre/megatron"}}};
  return Bundle(Json::array({Job("rl-a", {{"nodes", 2}, {"job_dir", "/lustre/me/out/jobs/rl-a"}})}),
                ReadOptions({{"slurm", slurm}}), {}, "/lustre/me", "/lustre/me/out/slurm")[0];
}

TEST(SlurmRender, IsTheGoldenScript) {
  const std::filesystem::path golden = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "tests/golden/slurm";
  const std::pair<const char*, std::string> files[] = {
      {"one-node.sbatch", SbatchFile(BundleOf({Job("rl-a"), Job("rl-b")})[0])},
      {"modules.sbatch", SbatchFile(WithModules())},
      {"two-nodes.sbatch", SbatchFile(TwoNodes())},
      {"container.sbatch", SbatchFile(WithContainer())}};
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
  EXPECT_THAT(*ParseTasks("1-5:9223372036854775807,9"), ElementsAre(1, 9));
  for (const char* wrong : {"", "a", "3-1", "1-", "-1", "1-99999999", "1:0", "1,,2", "0-3999999,0-3999999"})
    EXPECT_FALSE(ParseTasks(wrong)) << wrong;
  EXPECT_EQ(FormatTasks({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(FormatTasks({}), "");
}

TEST(SlurmParse, ReadsTheQueue) {
  const auto rows = ParseSqueue(
      "5|12-40:2%2|PENDING|0|0|1795310371|N/A|N/A||JobArrayTaskLimit|short,long|rl-x|\n"
      "5|0|FAILED|768|1|1795310371|1795310372|1795310373|n1|NonZeroExitCode|p|rl-x|\n"
      "6|N/A|RUNNING|0:0|0|1795310371|1795310373|NONE|n[1-2]|None|p|rl-y|\n"
      "5|1|FAILED|3:0|0|1795310371|1795310372|1795310373|n1|NonZeroExitCode|p|rl-x|\n"
      "7|0|RUNNING|0|0|1|1|1|n1|None|p|somebody-elses|\n"
      "CLUSTER: alps\n"
      "9|N/A|PENDING|0|0|1795310371|1795310999|N/A||Priority|p|demo.2.rl-z|\n"
      "a line end in a name|\n"
      "8|x|RUNNING|0|0|1|1|1|n1|None|p|rl-z|\n");
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0].tasks->size(), 15U);
  EXPECT_EQ(rows[0].reason, "JobArrayTaskLimit");
  EXPECT_EQ(rows[0].partitions, "short,long");
  EXPECT_EQ(rows[0].started_s, 0);
  EXPECT_EQ(rows[0].expected_s, 0);
  EXPECT_EQ(rows[1].exit_status, 768);
  EXPECT_EQ(rows[1].restarts, 1);
  EXPECT_EQ(rows[1].ended_s, 1795310373);
  EXPECT_FALSE(rows[2].tasks);
  EXPECT_EQ(rows[2].exit_status, 0);
  EXPECT_EQ(rows[3].exit_status, 768) << "as newer releases have it";
  EXPECT_EQ(rows[2].nodes, "n[1-2]");
  EXPECT_EQ(rows[5].name, "rl-z");
  EXPECT_EQ(rows[5].started_s, 0);
  EXPECT_EQ(rows[5].expected_s, 1795310999) << "it has not started: Slurm thinks that it will then";
  EXPECT_EQ(rows[4].job_id, 7);
  EXPECT_EQ(rows[4].name, "") << "none of ours, or one that was renamed";
}

TEST(SlurmParse, KnowsTheHostsOfAList) {
  EXPECT_THAT(HostsOf("n1"), ElementsAre("n1"));
  EXPECT_THAT(HostsOf("n[1-2,07],login,a[08-10]-ib"),
              ElementsAre("n1", "n2", "n07", "login", "a08-ib", "a09-ib", "a10-ib"));
  EXPECT_THAT(HostsOf(""), IsEmpty());
  for (const char* odd : {"n[1-", "n[2-1]", "n[x]", "n[1-999999]", "r[1-2]n[1-2]", "n[1-9000],m[1-9000]"}) {
    EXPECT_THAT(HostsOf(odd), ElementsAre(odd));
  }
}

TEST(SlurmParse, ReadsTheAccounting) {
  const auto rows = ParseSacct(
      "5_0|FAILED|3:0|1|2|3|n1|1000|rl-x\n5_[4-5%2]|CANCELLED by 1000|0:15|1|None|3||1000|rl-x\n"
      "9|COMPLETED|0:0|1|2|3|n1|1000|rl-y\n"
      "10|CANCELLED by 0|0:0|1|2|3|n1|1000|rl-z\n11|CANCELLED by 0|0:0|1|2|3|n1|0|rl-z\n"
      "12|CANCELLED|0:0|1|2|3|n1|1000|rl-z\n"
      "nonsense\n");
  ASSERT_EQ(rows.size(), 6U);
  std::vector<bool> by_its_user;
  for (const Row& row : rows) by_its_user.push_back(row.by_its_user);
  EXPECT_THAT(by_its_user, ElementsAre(false, true, false, false, false, false)) << "root is every node, too";
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
      "10001\nMaxJobCount             = 500\nMessageTimeout          = 15 sec\nMinJobAge               = 60 "
      "sec\nSLURM_VERSION           = 22.05.8\n");
  EXPECT_EQ(facts.version, "22.05.8");
  EXPECT_EQ(facts.max_array_size, 10001);
  EXPECT_EQ(facts.max_job_count, 500);
  EXPECT_EQ(facts.message_timeout_s, 15);
  EXPECT_EQ(facts.min_job_age_s, 60);
  EXPECT_TRUE(facts.accounting);
}

}  // namespace
}  // namespace ridgeline::slurm
