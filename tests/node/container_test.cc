// Trainers in containers, run by exec, which stays outside. tests/fakes/slurm_step.py starts them.
#include "node/container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>

#include "node/process_tree.h"
#include "ridgeline/lines.h"
#include "tests/node/exec_fixture.h"

namespace ridgeline::node {
namespace {
namespace fs = std::filesystem;

using ::testing::AllOf;
using testing::FindResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::ResultOf;
using ::testing::StartsWith;

constexpr const char* kInside = "for i in 1 2 3 4 5; do echo \"step $i: $((100 - i)) ms\"; done\n";

class InContainer : public Exec {
 protected:
  InContainer() {
    for (const char* folder : {"stand-in/images/torch", "stand-in/containers", "bin"}) MakeDirs(dir_ / folder);
    for (const char* name : {"srun", "enroot", "apptainer"}) {
      fs::create_symlink(RIDGELINE_SOURCE_DIR "/tests/fakes/slurm_step.py", dir_ / "bin" / name);
    }
    WriteFile(dir_ / "stand-in/images/torch/env", "FROM_IMAGE=yes\nSET_BY_BOTH=image\n");
    WriteFile(dir_ / "stand-in/calls", "");
    SpawnOptions spawn;
    spawn.environment = Environment();
    spawn.die_with_parent = true;
    stepd_ = Child::Spawn({RIDGELINE_SOURCE_DIR "/tests/fakes/slurm_step.py"}, spawn);
    EXPECT_TRUE(testing::Eventually([&] { return fs::exists(dir_ / "stand-in/stepd"); }));
  }
  ~InContainer() override {
    stepd_->Signal(SIGKILL);
    stepd_->Wait();
  }

  std::map<std::string, std::string> Environment() const {
    return {{"STAND_IN", dir_ / "stand-in"}, {"PATH", (dir_ / "bin").string() + ":/usr/bin:/bin"}};
  }
  std::map<std::string, std::string> With(const std::string& container) const {
    auto environment = Environment();
    environment["RIDGELINE_CONTAINER"] = container;
    environment["SLURMD_NODENAME"] = "n7";
    return environment;
  }
  std::map<std::string, std::string> Pyxis(const std::string& image = "torch") const {
    return With(
        fmt::format("--container-image={0}\n--container-name=ridgeline-7:no_exec\n--container-mounts={1}:{1}\n"
                    "--container-workdir={1}\n--no-container-mount-home\n",
                    image, dir_.path().string()));
  }
  std::map<std::string, std::string> Apptainer(const std::string& image = "torch") const {
    return With(fmt::format("{0}/bin/apptainer\nexec\n--bind\n{0}:{0}\n--pwd\n{0}\n--nv\ndocker://{1}\n",
                            dir_.path().string(), image));
  }

  // A job of one point with five steps, whose trainer is a shell script.
  Job MakeDefined(const std::string& script, const std::string& more = "processes: one\n",
                  const Json& values = Json::object()) {
    WriteFile(dir_ / "mine.sh", script);
    Job job = MakeJob({});
    Json all = {{"model", "llama-10m"}, {"warmup_steps", 1}, {"steps", 4}, {"trainer", "mine"}};
    all.update(values);
    std::vector<Problem> problems;
    const RunSpec spec = BuildSpec(all, problems);
    job.points = {{PointId(spec), spec, 0}};
    job.trainer.clear();
    job.definition = fmt::format(
        "name: mine\nabout: one line\nversion: \"1.0\"\ntested: log\nresult: patterns\ncommand: [/bin/sh, {}]\n{}"
        "metrics:\n  - {{name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, take: series}}\n",
        (dir_ / "mine.sh").string(), more);
    job.keep_logs = true;
    return job;
  }
  // As the job's script does before exec starts, so that no two ranks unpack the image at once.
  void Unpack(const std::map<std::string, std::string>& environment) const {
    std::vector<std::string> words = {dir_ / "bin/srun"};
    for (const std::string_view word : SplitLines(environment.at("RIDGELINE_CONTAINER"))) words.emplace_back(word);
    words.insert(words.end(), {"/bin/sh", "-c", "echo container-is-ready"});
    const Captured said = ridgeline::Run(words, 0, environment);
    EXPECT_EQ(said.stdout_text, "container-is-ready\n") << said.stderr_text;
  }
  RunResult RunIn(const Job& job, const std::map<std::string, std::string>& environment) {
    Exec::Run(job, 1000, environment);
    const auto result = FindResult(job);
    if (!result) ADD_FAILURE() << Log();
    return result.value_or(RunResult{});
  }
  std::string Calls() const { return ReadFile(dir_ / "stand-in/calls"); }
  std::string Said(const Job& job) const { return ReadFileIfThere(DirOf(job) / "log.txt").value_or(""); }

  std::optional<Child> stepd_;
};

TEST_F(InContainer, PyxisPutsItRoundTheTrainerAndNothingElse) {
  Job job = MakeDefined(std::string("echo image $FROM_IMAGE, both $SET_BY_BOTH, threads $OMP_NUM_THREADS in $PWD\n") +
                        kInside);
  job.environment = {{"SET_BY_BOTH", "the sweep's words"}, {"OMP_NUM_THREADS", "3"}};
  const RunResult result = RunIn(job, Pyxis());
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message << Said(job);
  EXPECT_EQ(result.step_ns.median_ns, 96'500'000);
  EXPECT_THAT(Said(job), HasSubstr("image yes, both the sweep's words, threads 3 in " + dir_.path().string()));
  EXPECT_THAT(result.environment.at("command"),
              AllOf(StartsWith("srun --overlap --mem=0 "), HasSubstr(" --nodelist=n7 --container-image=torch "),
                    HasSubstr("/bin/sh " + (dir_ / "mine.sh").string()), Not(HasSubstr("/usr/bin/env"))));
  EXPECT_THAT(Calls(), HasSubstr("enroot remove --force pyxis_ridgeline-7\n")) << "when the job has ended";
  EXPECT_TRUE(fs::is_empty(dir_ / "stand-in/containers"));
}

TEST_F(InContainer, APointsFoldersAreMountedToo) {
  MakeDirs(dir_ / "corpus");
  WriteFile(dir_ / "corpus/data.bin", "tokens");
  const Job job =
      MakeDefined(kInside, "processes: one\nsupports: {data: any}\n", {{"data", (dir_ / "corpus/data.bin").string()}});
  const std::string corpus = (dir_ / "corpus").string();
  EXPECT_EQ(RunIn(job, Pyxis()).status, RunStatus::kOk) << Said(job);
  EXPECT_THAT(Calls(), HasSubstr("," + corpus + ":" + corpus + " "));
  fs::remove_all(job.job_dir);
  EXPECT_EQ(RunIn(job, Apptainer()).status, RunStatus::kOk) << Said(job);
  EXPECT_THAT(Calls(), HasSubstr(" --nv --bind " + corpus + ":" + corpus + " docker://torch "));
}

TEST_F(InContainer, ApptainerStartsItAsAChildOfOurs) {
  Job job = MakeDefined(std::string("echo both $SET_BY_BOTH\n") + kInside);
  job.environment = {{"SET_BY_BOTH", "ours"}};
  const RunResult result = RunIn(job, Apptainer());
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message << Said(job);
  EXPECT_THAT(Said(job), HasSubstr("both ours"));
}

TEST_F(InContainer, ItsStartDoesNotCountAsThePointsTime) {
  WriteFile(dir_ / "stand-in/images/torch/slow", "1.5");
  Job job = MakeDefined(kInside);
  job.points[0].time_limit_s = 1;
  EXPECT_EQ(RunIn(job, Pyxis()).status, RunStatus::kOk) << Said(job);
}

TEST_F(InContainer, AnImageThatIsNotThereIsNoCrash) {
  for (const auto& environment : {Pyxis("missing"), Apptainer("missing")}) {
    const Job job = MakeDefined(kInside);
    fs::remove_all(job.job_dir);
    const RunResult result = RunIn(job, environment);
    EXPECT_EQ(EndOf(result), RunEnd(InfrastructureReason::kImage)) << result.message;
    EXPECT_THAT(result.message, HasSubstr("manifest")) << "in the words of what starts it";
    EXPECT_THAT(result.evidence.at("log_tail"), HasSubstr("manifest"));
  }
}

TEST_F(InContainer, AFaultyImageFailsToStartAndAFaultyTrainerCrashes) {
  Job job = MakeDefined(kInside);
  const std::string good = job.definition;
  const auto with = [&](const std::string& command, const std::string& more) {
    job.definition = good;
    job.definition.replace(job.definition.find("[/bin/sh,"), 9, "[" + command + ",");
    job.definition += more;
    fs::remove_all(job.job_dir);
    return RunIn(job, Pyxis());
  };
  const RunResult no_program = with("no-such-program", "");
  EXPECT_EQ(EndOf(no_program), RunEnd(InfrastructureReason::kStart));
  EXPECT_THAT(no_program.message, HasSubstr("no program 'no-such-program' in the container"));
  const RunResult no_folder = with("/bin/sh", "directory: /no/such/folder\n");
  EXPECT_EQ(EndOf(no_folder), RunEnd(InfrastructureReason::kStart));
  EXPECT_THAT(no_folder.message, HasSubstr("/no/such/folder"));
  WriteFile(dir_ / "mine.sh", "exit 127");
  EXPECT_EQ(with("/bin/sh", "").status, RunStatus::kCrashed) << "it had begun";
}

TEST_F(InContainer, AFolderThatCannotBeMountedIsAStart) {
  auto environment = Pyxis();
  environment["RIDGELINE_CONTAINER"] = "--container-image=torch\n--container-mounts=/no/such:/x\n";
  const RunResult result = RunIn(MakeDefined(kInside), environment);
  EXPECT_EQ(EndOf(result), RunEnd(InfrastructureReason::kStart));
  EXPECT_THAT(result.message, HasSubstr("source path does not exist: /no/such"));
}

// srun turns SIGTERM into a kill, and ignores the first SIGINT.
TEST_F(InContainer, SignalsReachTheTrainerPastSrun) {
  Job job = MakeDefined("trap 'echo saved; exit 3' TERM\necho step 1: 99 ms\nwhile true; do sleep 0.05; done\n");
  job.points[0].time_limit_s = 1;
  EXPECT_EQ(RunIn(job, Pyxis()).status, RunStatus::kTimeout);
  EXPECT_THAT(Said(job), AllOf(HasSubstr("saved"), Not(HasSubstr("forcing job termination"))));
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(InContainer, ATrainerThatIgnoresSignalsIsKilledWithAllItsProcesses) {
  Job job = MakeDefined("trap '' TERM INT\nsleep 61 &\nwhile true; do sleep 0.1; done\n");
  job.points[0].time_limit_s = 1;
  EXPECT_EQ(RunIn(job, Pyxis()).status, RunStatus::kTimeout);
  EXPECT_TRUE(NothingIsLeft());
  EXPECT_TRUE(testing::Eventually([] {
    return testing::ProcessesWith(std::string("sleep\0"
                                              "61",
                                              8))
        .empty();
  }));
}

TEST_F(InContainer, ASignalThatEndsItIsTheResults) {
  const RunResult result = RunIn(MakeDefined("kill -SEGV $$"), Pyxis());
  EXPECT_EQ(result.status, RunStatus::kCrashed);
  EXPECT_EQ(result.evidence.at("signal"), std::to_string(SIGSEGV));
}

constexpr const char* kEats = "import time; held = bytearray(300 << 20); time.sleep(60)";

TEST_F(InContainer, ItsMemoryIsLimited) {
  Job job = MakeDefined(std::string("exec python3 -c '") + kEats + "'\n");
  job.memory_limit_bytes = 200 << 20;
  const RunResult result = RunIn(job, Pyxis());
  EXPECT_EQ(result.status, RunStatus::kOomHost) << result.message;
  EXPECT_FALSE(result.evidence.contains("memory_at_most")) << "that would be exec's own cgroup";
  EXPECT_TRUE(NothingIsLeft());
}

// Like Slurm's steps, it descends from another process.
TEST(MarkedProcesses, CountsProcessesThatOthersStartForUsByTheirMark) {
  const std::string mark = std::to_string(::getpid());
  ProcessTree ours;
  ProcessTree tree(mark);
  const auto held = [](ProcessTree& of) { return std::min(*of.HeldBytes(), *of.ProportionalBytes()); };
  Child::Spawn({"setsid", "--fork", "env", "RIDGELINE_MARK=" + mark, "python3", "-c", kEats}).Wait();
  EXPECT_TRUE(testing::Eventually([&] { return held(tree) > 250 << 20; }));
  EXPECT_LT(held(ours), 100 << 20);
  tree.End();
  EXPECT_EQ(tree.Marked()->size(), 0U);
}

TEST_F(InContainer, RanksThatSrunStartsAreEachInIt) {
  const Job job =
      MakeDefined("echo rank $SLURM_PROCID $FROM_IMAGE\n[ $SLURM_PROCID = 0 ] || exit 0\n" + std::string(kInside),
                  "processes: srun\n", {{"ranks", 2}, {"batch_size", 2}});
  const RunResult result = RunIn(job, Pyxis());
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message << Said(job);
  EXPECT_THAT(Said(job), AllOf(HasSubstr("rank 0 yes"), HasSubstr("rank 1 yes")));
  EXPECT_THAT(Calls(), AllOf(HasSubstr("--ntasks=2"), Not(HasSubstr("--ntasks=1 ")))) << "one srun, not one in another";
}

// The trainer's only step belongs to the first node, and runs on all.
TEST_F(InContainer, TheFirstNodeAloneRemovesItFromAll) {
  const Job job = MakeDefined("[ $SLURM_PROCID = 0 ] || exit 0\n" + std::string(kInside), "processes: srun\n",
                              {{"ranks", 2}, {"batch_size", 2}});
  std::map<std::string, std::string> environment = Pyxis();
  environment.insert({{"RIDGELINE_NNODES", "2"}, {"RIDGELINE_NODE_RANK", "1"}, {"MASTER_ADDR", "127.0.0.1"}});
  environment["MASTER_PORT"] = "1";
  EXPECT_EQ(Exec::Run(job, 1000, environment), 0) << Log();
  EXPECT_THAT(Calls(), IsEmpty());
  environment["RIDGELINE_NODE_RANK"] = "0";
  EXPECT_EQ(RunIn(job, environment).status, RunStatus::kOk) << Said(job);
  EXPECT_THAT(Calls(),
              HasSubstr("--nodes=2 --ntasks=2 --ntasks-per-node=1 env -u ENROOT_DATA_PATH enroot remove --force "
                        "pyxis_ridgeline-7\n"));
}

TEST_F(InContainer, SrunIsGivenNoLoneColon) {
  Job job = MakeDefined(kInside);
  const std::string command = (dir_ / "mine.sh").string() + "]";
  job.definition.replace(job.definition.find(command), command.size(), (dir_ / "mine.sh").string() + ", \":\"]");
  const RunResult refused = RunIn(job, Pyxis());
  EXPECT_EQ(EndOf(refused), RunEnd(InfrastructureReason::kStart)) << refused.message;
  EXPECT_THAT(refused.message, HasSubstr("srun cannot pass on the argument ':'"));
  fs::remove_all(job.job_dir);
  EXPECT_EQ(RunIn(job, Apptainer()).status, RunStatus::kOk) << Said(job);
}

TEST_F(InContainer, RanksOfOursAreEachInIt) {
  WriteFile(dir_ / "stand-in/images/torch/large", "0.5");
  const Job job = MakeDefined("echo rank $RANK $FROM_IMAGE\n[ $RANK = 0 ] || exit 0\n" + std::string(kInside), "",
                              {{"ranks", 2}, {"batch_size", 2}});
  Unpack(Pyxis());
  const RunResult result = RunIn(job, Pyxis());
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message << Said(job);
  EXPECT_THAT(ReadFileIfThere(DirOf(job) / "log.1.txt").value_or(""), HasSubstr("rank 1 yes"));
  EXPECT_EQ(Calls().find("import torch"), Calls().rfind("import torch")) << "unpacked once: " << Calls();
}

TEST_F(InContainer, ATrainerOfTheContractIsInItToo) {
  Job job = MakeJob({"ok"});
  EXPECT_EQ(RunIn(job, Pyxis()).status, RunStatus::kOk);
  EXPECT_THAT(Calls(), HasSubstr("--container-image=torch"));
}

TEST_F(InContainer, ToldToStopItEndsWithTheJob) {
  const Job job =
      MakeDefined("trap 'echo told; exit 3' INT\n" + std::string(kInside) + "while true; do sleep 0.05; done\n");
  testing::WriteJob(job);
  Child exec = Start(job, 2000, Pyxis());
  ASSERT_TRUE(testing::Eventually([&] { return Said(job).find("step 5") != std::string::npos; }));
  WriteFile(CancelFile(job.job_dir), "");
  exec.Signal(SIGINT);
  exec.Wait();
  EXPECT_EQ(ResultOf(job).status, RunStatus::kCancelled);
  EXPECT_THAT(Said(job), AllOf(HasSubstr("told"), Not(HasSubstr("one more within"))));
  EXPECT_TRUE(NothingIsLeft());
}

TEST(ContainerWords, SlurmsReportOfAKillForMemoryIsFound) {
  EXPECT_TRUE(
      SaysKilledForMemory("step 1\nslurmstepd: error: Detected 1 oom_kill event in StepId=7.1. Some of the step tasks "
                          "have been OOM Killed.\n"));
  EXPECT_FALSE(SaysKilledForMemory("oom_kill event\n"));
}

TEST(ContainerWords, WhyItNeverBeganIsTheRuntimesOrTheImages) {
  const std::pair<const char*, InfrastructureReason> logs[] = {
      {"slurmstepd: error: pyxis: failed to import docker image: a#b\nslurmstepd: error: pyxis:     [ERROR] URL "
       "https://a/v2/b returned error code: 401 Unauthorized\n",
       InfrastructureReason::kImage},
      {"slurmstepd: error: pyxis: failed to create container filesystem for image: x\nslurmstepd: error: pyxis:     "
       "write: No space left on device\n",
       InfrastructureReason::kImage},
      {"srun: unrecognized option '--container-image=x'\n", InfrastructureReason::kStart},
      {"FATAL:   could not open image /x.sif: failed to retrieve path for /x.sif: lstat /x.sif: no such file\n",
       InfrastructureReason::kImage},
      {"srun: error: Unable to create step for job 7: Requested node configuration is not available\n",
       InfrastructureReason::kStart},
      {"srun: error: Task launch for StepId=7.1 failed on node n7: Communication connection failure\n",
       InfrastructureReason::kStart},
      {"", InfrastructureReason::kStart}};
  for (const auto& [log, reason] : logs) EXPECT_EQ(WhyNotBegun(log, false, 0).reason, reason) << log;
  EXPECT_THAT(WhyNotBegun(logs[0].first, false, 0).message, HasSubstr("401 Unauthorized"));
  EXPECT_EQ(WhyNotBegun("srun: error: n7: task 0: Exited with exit code 1\n", false, 0).message,
            "its container could not be started");
}

// For points with limits, all within the job's time: the sum of the limits, half a minute each, and kContainerStartsS.
TEST(ContainerWords, StartsOfAllPointsKeepWithinTheJobsTime) {
  constexpr int64_t kSecond = 1'000'000'000;
  ContainerStarts starts;
  int64_t took_ns = 0;
  for (int point = 0; point < 20; ++point) {
    EXPECT_GE(starts.LimitNs(), 15 * kSecond) << "what is quick never fails of another's delay";
    took_ns += starts.LimitNs();
    starts.Took(starts.LimitNs());
  }
  EXPECT_EQ(took_ns, (kContainerStartsS + 20 * 15) * kSecond);
  ContainerStarts quick;
  for (int point = 0; point < 1000; ++point) quick.Took(5 * kSecond);
  EXPECT_EQ(quick.LimitNs(), (kContainerStartsS + 15) * kSecond);
}

}  // namespace
}  // namespace ridgeline::node
