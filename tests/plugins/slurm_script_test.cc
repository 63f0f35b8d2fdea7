// A task's script, run by the shell that would run it, with srun, module and similar programs replaced by a test.
#include "slurm/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "base/files.h"
#include "base/process.h"
#include "slurm/meaning.h"
#include "slurm/render.h"
#include "tests/base/temp_dir.h"
#include "tests/plugins/slurm_job.h"

namespace ridgeline::slurm {
namespace {

using plugin::Failure;
using plugin::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class SlurmScript : public ::testing::Test {
 protected:
  // The job's program: it leaves `ran`, which contains its arguments.
  Json JobHere(const Json& more = Json::object()) const {
    Json job = Job("rl-a", {{"job_dir", dir_ / "jobs/rl-a"},
                            {"exec", {"/bin/sh", "-c", "echo \"$@\" > ran", "sh", "exec", "job.json"}}});
    job.update(more);
    std::filesystem::create_directories(dir_ / "jobs");
    return job;
  }
  std::string ScriptOf(const Json& slurm, const Json& job) const {
    return SbatchFile(
        Bundle(Json::array({job}), ReadOptions({{"slurm", slurm}}), {}, dir_.path().string(), dir_.path().string())[0]);
  }
  ExitStatus RunScript(const std::string& text, std::map<std::string, std::string> environment = {}) {
    WriteFileAtomic(dir_ / "script", text);
    SpawnOptions spawn;
    environment.insert({{"SLURM_ARRAY_TASK_ID", "0"}, {"SLURMD_NODENAME", "n7"}, {"PATH", Path()}});
    spawn.environment = environment;
    spawn.stderr_file = dir_ / "log";
    return Child::Spawn({"/bin/bash", dir_ / "script"}, spawn).Wait();
  }
  ExitStatus RunIt(const Json& slurm) { return RunScript(ScriptOf(slurm, JobHere())); }

  std::string Path() const { return (dir_ / "bin").string() + ":/usr/bin:/bin"; }
  void Program(const std::string& name, const std::string& lines) const {
    std::filesystem::create_directories(dir_ / "bin");
    WriteFileAtomic(dir_ / ("bin/" + name), "#!/bin/bash\n" + lines + "\n");
    std::filesystem::permissions(dir_ / ("bin/" + name), std::filesystem::perms(0755));
  }
  bool Ran() const { return std::filesystem::exists(dir_ / "ran"); }
  std::string Log() const { return ReadFileIfThere(dir_ / "log").value_or(""); }
  Cause WhyNot(const ExitStatus& status) const { return CauseOf(status.exit_code << 8, "NonZeroExitCode", Log()); }

  TempDir dir_;
};

// Exactly the intended command runs, whatever characters names and arguments have.
TEST_F(SlurmScript, NothingReachesTheShellUnquoted) {
  const std::string nasty = "a b'c\"d$HOME`id`;#\\&|<>*?\n-e";
  Options options;
  options.prolog = {"export FROM_PROLOG='a b'"};
  const std::string code = "printf '%s|%s' \"$FROM_PROLOG\" \"$1\" > " + (dir_.path() / "out").string();
  const BatchJob batch =
      Bundle(Json::array({Job("rl-a", {{"sweep", nasty}, {"exec", {"/bin/sh", "-c", code, "sh", nasty}}})}), options,
             {}, dir_.path().string(), dir_.path().string())[0];
  const std::string file = SbatchFile(batch);
  std::istringstream lines(file);
  for (std::string line; std::getline(lines, line) && line != "exec \"$@\"";) {
    if (!line.starts_with("#SBATCH")) continue;
    EXPECT_TRUE(std::regex_match(line, std::regex("#SBATCH (--[^ \"']+|\"--.*\")"))) << line;
  }
  WriteFileAtomic(dir_.path() / "script", file);
  SpawnOptions spawn;
  spawn.environment = {{"SLURM_ARRAY_TASK_ID", "0"}};
  EXPECT_TRUE(Child::Spawn({"/bin/bash", dir_.path() / "script"}, spawn).Wait().ok());
  EXPECT_EQ(ReadFile(dir_.path() / "out"), "a b|" + nasty);
}

TEST_F(SlurmScript, RefusesToRunUnderOptionsOfTheEnvironment) {
  const BatchJob batch = Bundle(Json::array({Job("rl-a")}), {}, {}, dir_.path().string(), dir_.path().string())[0];
  WriteFileAtomic(dir_.path() / "script", SbatchFile(batch));
  SpawnOptions spawn;
  spawn.environment = {{"SBATCH_PARTITION", "debug"}, {"SLURM_ARRAY_TASK_ID", "0"}};
  spawn.stderr_file = dir_.path() / "err";
  EXPECT_EQ(Child::Spawn({"/bin/bash", dir_.path() / "script"}, spawn).Wait().exit_code, 2);
  EXPECT_THAT(ReadFile(dir_.path() / "err"), HasSubstr("SBATCH_PARTITION is set"));
}

// ---- what keeps a job from starting

TEST_F(SlurmScript, RunsTheJobWhereAllIsThere) {
  EXPECT_TRUE(RunIt(Json::object()).ok()) << Log();
  EXPECT_EQ(ReadFile(dir_ / "ran"), "exec job.json\n");
}

TEST_F(SlurmScript, AFolderThatIsNotOnTheNodeIsTheNodesFault) {
  const std::string script = ScriptOf(Json::object(), JobHere());
  std::filesystem::remove(dir_ / "jobs");
  const ExitStatus status = RunScript(script);
  EXPECT_EQ(status.exit_code, 5);
  EXPECT_EQ(WhyNot(status).reason, "node");
  EXPECT_EQ(WhyNot(status).node, "n7");
  EXPECT_THAT(WhyNot(status).message, HasSubstr("jobs is not there"));
  EXPECT_FALSE(Ran());
  const BatchJob elsewhere =
      Bundle(Json::array({Job("rl-a")}), {}, {}, (dir_ / "no such").string(), dir_.path().string())[0];
  std::filesystem::remove(dir_ / "log");
  EXPECT_EQ(WhyNot(RunScript(SbatchFile(elsewhere))).reason, "node");
}

TEST_F(SlurmScript, AProgramThatIsNotOnTheNodeIsAStart) {
  const ExitStatus status =
      RunScript(ScriptOf(Json::object(), JobHere({{"exec", {"/opt/nowhere/ridgeline", "exec", "job.json"}}})));
  EXPECT_EQ(WhyNot(status).reason, "start");
  EXPECT_THAT(WhyNot(status).message, HasSubstr("/opt/nowhere/ridgeline is not there"));
}

TEST_F(SlurmScript, SbatchsVariablesDoNotReachTheJob) {
  const Json job = JobHere({{"exec", {"/bin/sh", "-c", "env > ran"}}});
  const std::map<std::string, std::string> set = {{"SLURM_JWT", "secret"},
                                                  {"SLURM_CLUSTERS", "alps"},
                                                  {"SLURM_CONF_SERVER", "there"},
                                                  {"SLURM_CONF", "/etc/slurm.conf"},
                                                  {"MINE", "yes"}};
  ASSERT_TRUE(RunScript(ScriptOf(Json::object(), job), set).ok()) << Log();
  EXPECT_THAT(ReadFile(dir_ / "ran"), AllOf(HasSubstr("MINE=yes"), HasSubstr("SLURM_CONF=/etc/slurm.conf"),
                                            Not(HasSubstr("secret")), Not(HasSubstr("alps")), Not(HasSubstr("there"))));
}

TEST_F(SlurmScript, TheSubmittersPinningDoesNotReachRanks) {
  const Json job = JobHere({{"exec", {"/bin/sh", "-c", "env > ran"}}});
  const std::map<std::string, std::string> set = {{"SLURM_CPU_BIND", "quiet,mask_cpu:0x1"},
                                                  {"SLURM_CPU_BIND_TYPE", "mask_cpu:"},
                                                  {"SLURM_MEM_BIND", "quiet,local"},
                                                  {"SLURM_DISTRIBUTION", "cyclic"},
                                                  {"SLURM_HINT", "nomultithread"},
                                                  {"SRUN_CPUS_PER_TASK", "1"},
                                                  {"SRUN_EXPORT_ENV", "NONE"},
                                                  {"SLURM_EXPORT_ENV", "NONE"}};
  ASSERT_TRUE(RunScript(ScriptOf(Json::object(), job), set).ok()) << Log();
  for (const char* name :
       {"SLURM_CPU_BIND", "SLURM_MEM_BIND", "SLURM_DISTRIBUTION", "SLURM_HINT", "SRUN_", "SLURM_EXPORT_ENV"}) {
    EXPECT_THAT(ReadFile(dir_ / "ran"), Not(HasSubstr(name)));
  }
  ASSERT_TRUE(RunScript(ScriptOf({{"sbatch", {{"distribution", "cyclic"}}}}, job), set).ok()) << Log();
  EXPECT_THAT(ReadFile(dir_ / "ran"), AllOf(HasSubstr("SLURM_DISTRIBUTION=cyclic"), Not(HasSubstr("SLURM_HINT"))));
}

// ---- prolog

TEST_F(SlurmScript, ALineOfThePrologThatFailsKeepsTheJobFromStarting) {
  const ExitStatus status = RunIt({{"prolog", {"true", "ls /no/such/folder", "touch behind"}}});
  EXPECT_EQ(WhyNot(status).reason, "start");
  EXPECT_THAT(WhyNot(status).message, AllOf(HasSubstr("exit code 2"), HasSubstr("ls /no/such/folder")));
  EXPECT_FALSE(Ran());
  EXPECT_FALSE(std::filesystem::exists(dir_ / "behind"));
}

TEST_F(SlurmScript, ALineThatMayFailSaysSo) {
  EXPECT_TRUE(RunIt({{"prolog", {"ls /no/such/folder || true", "export FROM=prolog"}}}).ok()) << Log();
  EXPECT_TRUE(Ran());
}

TEST_F(SlurmScript, APrologThatEndsTheScriptIsNoEndOfTheJob) {
  const ExitStatus status = RunIt({{"prolog", "exit 0"}});
  EXPECT_EQ(WhyNot(status).reason, "start");
  EXPECT_FALSE(status.ok());
}

// The prolog's rule does not apply to the job itself.
TEST_F(SlurmScript, EndsWithTheJobsExitCode) {
  const Json job = JobHere({{"exec", {"/bin/sh", "-c", "exit 130"}}});
  EXPECT_EQ(RunScript(ScriptOf({{"prolog", "true"}}, job)).exit_code, 130);
  EXPECT_THAT(Log(), Not(HasSubstr("not started")));
}

// ---- modules

// `module` as in some release: a shell function in the environment.
std::map<std::string, std::string> Module(const std::string& body) {
  return {{"BASH_FUNC_module%%", "() { " + body + "\n}"}};
}
constexpr const char* kLoads =
    "[ \"$1\" = load ] || return 1; [ \"$2\" = gcc ] && set -- load gcc/13.2;"
    " export LOADEDMODULES=\"$LOADEDMODULES:$2\" TOOLCHAIN=\"$TOOLCHAIN $2\"; ";

TEST_F(SlurmScript, ModulesAreLoadedBeforeAnythingElse) {
  const Json job = JobHere({{"exec", {"/bin/sh", "-c", "echo $TOOLCHAIN > ran"}}});
  const Json slurm = {{"modules", {"gcc", "cuda/13.0"}}, {"prolog", "[ \"$TOOLCHAIN\" = ' gcc/13.2 cuda/13.0' ]"}};
  ASSERT_TRUE(RunScript(ScriptOf(slurm, job), Module(kLoads)).ok()) << Log();
  EXPECT_EQ(ReadFile(dir_ / "ran"), "gcc/13.2 cuda/13.0\n");
}

TEST_F(SlurmScript, AModuleThatDoesNotLoadKeepsTheJobFromStarting) {
  const std::pair<const char*, const char*> releases[] = {
      {"Lmod", "echo 'Lmod has detected the following error: unknown: \"cuda\"' >&2; return 1"},
      {"Lmod, as eval leaves it", "echo 'unknown: \"cuda\"' >&2; eval false"},
      {"environment-modules 3", "[ $1 = load ] && echo 'ERROR:105: Unable to locate a modulefile for \"cuda\"' >&2"},
      {"environment-modules 4", "[ $1 = load ] || return 1; echo 'ERROR: Unable to locate \"cuda\"' >&2; return 0"},
      {"says nothing at all", "[ $1 = load ]"}};
  for (const auto& [release, body] : releases) {
    std::filesystem::remove(dir_ / "log");
    const ExitStatus status = RunScript(ScriptOf({{"modules", "cuda"}}, JobHere()), Module(body));
    EXPECT_EQ(WhyNot(status).reason, "start") << release << Log();
    EXPECT_THAT(WhyNot(status).message, StartsWith("the module cuda does not load")) << release;
    if (std::string(body).find("echo") != std::string::npos) {
      EXPECT_THAT(WhyNot(status).message, HasSubstr("\"cuda\"")) << "in the module's own words";
    }
    EXPECT_FALSE(Ran()) << release;
  }
}

// A name that stands for another module is loaded under that module's name.
TEST_F(SlurmScript, AModulesOtherNameIsAskedAfter) {
  const std::string body = "[ \"$1\" = is-loaded ] && return 0; export LOADEDMODULES=openmpi/4.1; ";
  EXPECT_TRUE(RunScript(ScriptOf({{"modules", "mpi"}}, JobHere()), Module(body)).ok()) << Log();
  EXPECT_TRUE(Ran());
}

// ---- several nodes

// srun as far as needed: runs the command once for each node, and ignores other options.
constexpr const char* kSrun =
    "[ \"$1\" = --help ] && { echo \"$HELP\"; exit 0; }\n"
    "echo \"srun $*\" >> calls\n"
    "while [ \"${1#--}\" != \"$1\" ]; do [ \"${1#--ntasks=}\" != \"$1\" ] && tasks=${1#--ntasks=}; shift; done\n"
    "worst=0\n"
    "for node in $(seq 0 $((tasks - 1))); do\n"
    "  SLURM_NODEID=$node SLURMD_NODENAME=n$node PATH=$PATH \"$@\" || worst=$?\n"
    "done\n"
    "exit $worst";

TEST_F(SlurmScript, HalfAGangIsNotStarted) {
  Program("srun", kSrun);
  // The second node has no such program.
  Program("ours", "exit 0");
  Program("bash",
          "[ \"$SLURMD_NODENAME\" = n1 ] && rm -f \"" + (dir_ / "bin/ours").string() + "\"\nexec /bin/bash \"$@\"");
  const Json job = JobHere({{"nodes", 2}, {"exec", {dir_ / "bin/ours", "exec", "job.json"}}});
  const ExitStatus status = RunScript(ScriptOf(Json::object(), job), {{"SLURM_JOB_ID", "7"}});
  EXPECT_EQ(WhyNot(status).reason, "start") << Log();
  EXPECT_EQ(WhyNot(status).node, "n1") << "not the node that the script runs on";
  EXPECT_THAT(Log(), Not(HasSubstr("n0: "))) << "the other has what it needs";
}

TEST_F(SlurmScript, AWholeGangIsStartedOnceANode) {
  Program("srun", kSrun);
  Program("scontrol", "[ \"$2\" = hostnames ] && echo n0; echo NodeAddr=127.0.0.9");
  const Json job =
      JobHere({{"nodes", 2},
               {"exec", {"/bin/sh", "-c", "echo $RIDGELINE_NODE_RANK of $RIDGELINE_NNODES $MASTER_ADDR >> ran"}}});
  const ExitStatus status =
      RunScript(ScriptOf(Json::object(), job), {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NUM_NODES", "2"}});
  EXPECT_TRUE(status.ok()) << Log();
  EXPECT_EQ(ReadFile(dir_ / "ran"), "0 of 2 127.0.0.9\n1 of 2 127.0.0.9\n");
}

// ---- containers

constexpr const char* kImage = "nvcr.io/nvidia/pytorch:26.09-py3";

// Shows what exec is told to put before a trainer's command.
constexpr const char* kTellsContainer = "echo \"$RIDGELINE_CONTAINER\" > ran";
constexpr const char* kHasPyxis = "      --container-image=[USER@]...";

TEST_F(SlurmScript, ExecIsToldHowPyxisPutsAContainerRoundATrainer) {
  Program("srun", kSrun);
  Program("apptainer", "echo \"apptainer $*\" >> calls; echo container-is-ready");
  const Json slurm = {
      {"container", kImage}, {"container_mounts", {"/data", "/a:/b:ro"}}, {"srun", {{"container-remap-root", true}}}};
  const Json job = JobHere({{"exec", {"/bin/sh", "-c", kTellsContainer}}});
  const ExitStatus status = RunScript(ScriptOf(slurm, job), {{"HELP", kHasPyxis}, {"SLURM_JOB_ID", "77"}});
  EXPECT_TRUE(status.ok()) << Log();
  const std::string dir = dir_.path().string();
  const std::string words =
      "--container-image=nvcr.io#nvidia/pytorch:26.09-py3\n--container-name=ridgeline-77:no_exec\n"
      "--container-mounts=" +
      dir + ":" + dir + ",/data:/data,/a:/b:ro\n--container-workdir=" + dir +
      "\n--no-container-mount-home\n--container-remap-root\n";
  EXPECT_EQ(ReadFile(dir_ / "ran"), words);
  std::string line = words;
  std::replace(line.begin(), line.end(), '\n', ' ');
  EXPECT_EQ(ReadFile(dir_ / "calls"),
            "srun --nodes=1 --ntasks=1 --ntasks-per-node=1 --wait=0 --mpi=none --overlap --mem=0 --input=none "
            "--kill-on-bad-exit=1 " +
                line + "/bin/sh -c echo container-is-ready\n")
      << "the image is made ready, and exec is the script's own process";
}

TEST_F(SlurmScript, ExecIsToldOfApptainerWhereThereIsNoPyxis) {
  Program("srun", kSrun);
  Program("apptainer", "echo \"apptainer $*\" >> calls; echo container-is-ready");
  const Json job = JobHere({{"exec", {"/bin/sh", "-c", kTellsContainer}}});
  EXPECT_TRUE(RunScript(ScriptOf({{"container", kImage}, {"gpus", 1}}, job)).ok()) << Log();
  const std::string dir = dir_.path().string();
  EXPECT_EQ(ReadFile(dir_ / "ran"), dir + "/bin/apptainer\nexec\n--bind\n" + dir + ":" + dir + "\n--pwd\n" + dir +
                                        "\n--nv\ndocker://nvcr.io/nvidia/pytorch:26.09-py3\n");
  EXPECT_THAT(ReadFile(dir_ / "calls"),
              HasSubstr(" docker://nvcr.io/nvidia/pytorch:26.09-py3 /bin/sh -c echo container-is-ready\n"));
}

TEST_F(SlurmScript, AnImageThatANodeCannotHaveIsToldWithItsWords) {
  Program("srun",
          "[ \"$1\" = --help ] && { echo --container-image; exit 0; }\n"
          "echo 'slurmstepd: error: pyxis: failed to import docker image: a#b' >&2\n"
          "echo 'srun: error: n9: task 1: Exited with exit code 1' >&2\nexit 1");
  const ExitStatus status = RunIt({{"container", "a/b"}});
  EXPECT_EQ(WhyNot(status).reason, "image") << Log();
  EXPECT_EQ(WhyNot(status).node, "n9") << "where it failed";
  EXPECT_THAT(WhyNot(status).message, HasSubstr("failed to import docker image: a#b"));
  EXPECT_FALSE(Ran());
}

TEST_F(SlurmScript, OurOwnTrainerIsInNoContainer) {
  const Json slurm = {{"container", kImage}};
  EXPECT_THAT(ScriptOf(slurm, JobHere({{"own_trainer", true}})), Not(HasSubstr("RIDGELINE_CONTAINER")));
  const Options options = ReadOptions({{"slurm", slurm}});
  EXPECT_EQ(Bundle(Json::array({Job("rl-a", {{"own_trainer", true}}), Job("rl-b")}), options, {}, "/w", "/l").size(),
            2U);
}

TEST_F(SlurmScript, AnImagesTimeDoesNotCountAsThePoints) {
  const auto minutes = [&](const Json& slurm) {
    const std::string text = ScriptOf(slurm, JobHere({{"time_limit_s", 600}}));
    return text.substr(text.find("--time=") + 7, 2);
  };
  EXPECT_EQ(minutes(Json::object()), "10");
  EXPECT_EQ(minutes({{"container", kImage}}), "35");
  EXPECT_EQ(minutes({{"container", kImage}, {"time", "20m"}}), "20");
}

TEST_F(SlurmScript, WithoutWhatStartsAContainerTheJobIsNotStarted) {
  Program("srun", kSrun);
  for (const char* runtime : {"auto", "pyxis", "apptainer"}) {
    std::filesystem::remove(dir_ / "log");
    const ExitStatus status = RunIt({{"container", kImage}, {"container_runtime", runtime}});
    EXPECT_EQ(WhyNot(status).reason, "start") << runtime << Log();
    EXPECT_FALSE(Ran()) << runtime;
  }
}

TEST_F(SlurmScript, ImagesAreWrittenAsEverybodyWritesThem) {
  const std::tuple<const char*, const char*, const char*> images[] = {
      {"ubuntu:24.04", "=ubuntu:24.04'", " docker://ubuntu:24.04"},
      {"nvidia/cuda:13.0", "=nvidia/cuda:13.0'", " docker://nvidia/cuda:13.0"},
      {"localhost/mine", "=localhost#mine'", " docker://localhost/mine"},
      {"host:5000/a/b:1", "=host:5000#a/b:1'", " docker://host:5000/a/b:1"},
      {"nvcr.io#nvidia/x:1", "=nvcr.io#nvidia/x:1'", " docker://nvcr.io/nvidia/x:1"},
      {"docker://nvcr.io/nvidia/x:1", "=nvcr.io#nvidia/x:1'", " docker://nvcr.io/nvidia/x:1"},
      {"/images/x.sqsh", "=/images/x.sqsh ", " /images/x.sqsh"},
      {"oras://host/x:1", "=oras://host/x:1'", " oras://host/x:1"}};
  for (const auto& [image, pyxis, apptainer] : images) {
    std::string text = ScriptOf({{"container", image}}, JobHere());
    EXPECT_THAT(text, HasSubstr(std::string("--container-image") + pyxis)) << image;
    std::erase(text, '\'');
    EXPECT_THAT(text, HasSubstr(apptainer)) << image;
  }
}

TEST_F(SlurmScript, AFolderThatNoContainerCanHaveIsRefused) {
  const Options options = ReadOptions({{"slurm", {{"container", "x"}}}});
  EXPECT_THROW(Bundle(Json::array({Job("rl-a")}), options, {}, "/a,b", "/logs"), Failure);
  EXPECT_THROW(Bundle(Json::array({Job("rl-a", {{"job_dir", "/a:b/jobs/rl-a"}})}), options, {}, "/w", "/logs"),
               Failure);
}

}  // namespace
}  // namespace ridgeline::slurm
