// Trainers that a definition describes, run by exec: started, followed, read, ended.
#include "node/defined.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "run/presets.h"
#include "tests/node/exec_fixture.h"

namespace ridgeline::node {
namespace {

using ::testing::HasSubstr;
using testing::ResultOf;

class Defined : public Exec {
 protected:
  // A job of one point with five steps, whose trainer is a shell script.
  Job MakeDefined(const std::string& script, const std::string& more = "processes: one\n",
                  const Json& values = Json::object()) {
    const std::filesystem::path file = dir_.path() / "mine.sh";
    WriteFile(file, "#!/bin/sh\n" + script);
    ::chmod(file.c_str(), 0755);
    Job job = MakeJob({});
    Json all = {{"model", "llama-10m"}, {"batch_size", 10}, {"seq_length", 100},
                {"warmup_steps", 1},    {"steps", 4},       {"trainer", "mine"}};
    all.update(values);
    std::vector<Problem> problems;
    const RunSpec spec = BuildSpec(all, problems);
    for (const Problem& problem : problems) ADD_FAILURE() << problem.message;
    job.points = {{PointId(spec), spec, 0}};
    job.trainer.clear();
    job.definition = fmt::format(R"(name: mine
about: one line
version: "1.0"
tested: log
result: patterns
command: [{}, '{{{{total_steps}}}}', '{{{{output_dir}}}}']
{}metrics:
  - {{name: step_time, regex: 'step (?P<step>\d+): (?P<value>\S+) ms', unit: ms, take: series}}
  - {{name: version, regex: 'mine (\S+)'}}
)",
                                 file.string(), more);
    return job;
  }

  RunResult RunDefined(const Job& job, const std::map<std::string, std::string>& environment = {}) {
    EXPECT_EQ(Exec::Run(job, 10'000, environment), 0) << Log();
    return ResultOf(job);
  }
};

constexpr const char* kFiveSteps = "echo mine 2.1; for i in 1 2 3 4 5; do echo \"step $i: $((100 - i)) ms\"; done\n";

TEST_F(Defined, ItsLogIsItsResult) {
  const RunResult result = RunDefined(MakeDefined(kFiveSteps));
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.step_ns.median_ns, 96'500'000);
  EXPECT_EQ(result.environment.at("version"), "2.1");
  EXPECT_THAT(result.environment.at("command"), HasSubstr("mine.sh 5 "));
  EXPECT_FALSE(result.environment.at("cpu").empty());
  EXPECT_FALSE(result.device.empty());
  EXPECT_GT(result.memory.rss_peak_bytes, 0);
  EXPECT_EQ(result.evidence.at("memory_from"), "its processes");
}

TEST_F(Defined, NoStepsTakeLongerThanItsProcessLived) {
  const RunResult result = RunDefined(MakeDefined("for i in 1 2 3 4 5; do echo \"step $i: 100000 ms\"; done\n"));
  EXPECT_EQ(result.status, RunStatus::kInvalid);
  EXPECT_THAT(result.message, HasSubstr("its 5 step times come to 8 min 20 s, and the process lived for "));
  EXPECT_EQ(result.step_ns.median_ns, 0);
}

TEST_F(Defined, TooFewMeasuredStepsAreInvalid) {
  const char* three = "for i in 1 2 3; do echo \"step $i: 5 ms\"; done\n";
  const RunResult few = RunDefined(MakeDefined(three));
  EXPECT_EQ(few.status, RunStatus::kOk) << few.message;
  EXPECT_EQ(few.measured_steps, 2);
  Job job = MakeDefined(three, "processes: one\n", {{"measure", {{"min_steps", 3}}}});
  std::filesystem::remove_all(job.job_dir);
  const RunResult refused = RunDefined(job);
  EXPECT_EQ(refused.status, RunStatus::kInvalid);
  EXPECT_THAT(refused.message, HasSubstr("of 2 measured steps, and measure: {min_steps: 3} asks for as many"));
}

TEST_F(Defined, MemoryIsOfAllThatItStarts) {
  // The shell holds little memory, and its child a lot, for as long as it is sampled.
  const RunResult result = RunDefined(MakeDefined(
      "python3 -c 'import time; x = bytearray(300000000); time.sleep(3)' & wait\n" + std::string(kFiveSteps)));
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_GT(result.memory.rss_peak_bytes, 300'000'000);
}

TEST_F(Defined, ACgroupThatHeldLessThanItsProcessesBoundsNothing) {
  Job job = MakeDefined("echo held 4096 GiB\n" + std::string(kFiveSteps));
  job.definition += "  - {name: host_peak, regex: 'held (\\d+) GiB', unit: GiB, take: max}\n";
  const RunResult result = RunDefined(job);
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.memory.rss_peak_bytes, int64_t{4096} << 30);
  EXPECT_FALSE(result.evidence.contains("memory_at_most"));
}

TEST_F(Defined, TheMemoryLimitIsOfAllThatItStarts) {
  Job job = MakeDefined("python3 -c 'import time; x = bytearray(600000000); time.sleep(600)' & wait\n");
  job.memory_limit_bytes = 300'000'000;
  const RunResult result = RunDefined(job);
  EXPECT_EQ(result.status, RunStatus::kOomHost) << result.message;
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(Defined, HowFarItIsStandsInTheProgressFile) {
  const Job job = MakeDefined("echo 'step 1: 5 ms'; echo 'step 2: 5 ms'; sleep 600\n");
  testing::WriteJob(job);
  Child exec = Start(job);
  const auto progress = ProgressFile(job.job_dir, job.points[0].id);
  EXPECT_TRUE(testing::Eventually([&] { return ReadFileIfThere(progress).value_or("") == "2 5 200000\n"; }));
  exec.Signal(SIGINT);
  exec.Wait();
  EXPECT_EQ(ResultOf(job).status, RunStatus::kCancelled);
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(Defined, EndsProcessesThatATrainerLeavesRunning) {
  const RunResult result = RunDefined(MakeDefined("setsid sleep 600 & (sleep 600 &)\n" + std::string(kFiveSteps)));
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_TRUE(NothingIsLeft());
  EXPECT_TRUE(testing::ProcessesWith("sleep 600").empty());
}

TEST_F(Defined, FilesAreWrittenBeforeItStarts) {
  const Job job = MakeDefined("cat \"$2/config.toml\" >&2; echo $MODE >&2\n" + std::string(kFiveSteps),
                              "processes: one\nenv: {MODE: '{{precision}}', OTHER: ours}\nfiles:\n  config.toml: |\n"
                              "    model = {{model}}\n");
  Job kept = job;
  kept.keep_logs = true;
  kept.environment["OTHER"] = "the sweep's";
  EXPECT_EQ(RunDefined(kept).status, RunStatus::kOk);
  EXPECT_THAT(ReadFile(DirOf(kept) / "log.txt"), HasSubstr("model = \"llama-10m\"\nbf16\n"));
  EXPECT_TRUE(IsThere(DirOf(kept) / "output/config.toml"));
}

TEST_F(Defined, ItRunsInTheFolderThatItsDefinitionNames) {
  MakeDirs(dir_.path() / "src");
  WriteFile(dir_.path() / "src/times", "step 1: 5 ms\nstep 2: 5 ms\nstep 3: 5 ms\nstep 4: 5 ms\nstep 5: 5 ms\n");
  const std::string directory = "processes: one\ndirectory: '" + dir_.path().string() + "/{{env.PART}}'\n";
  Job job = MakeDefined("cat times; echo x >\"$2/made\"\n", directory);
  job.environment["PART"] = "src";
  job.keep_logs = true;
  EXPECT_EQ(RunDefined(job).step_ns.median_ns, 5'000'000);
  EXPECT_TRUE(IsThere(DirOf(job) / "output/made"));

  // A program is searched there, too.
  WriteFile(dir_.path() / "src/mine.sh", "#!/bin/sh\ncat times\n");
  ::chmod((dir_.path() / "src/mine.sh").c_str(), 0755);
  std::filesystem::remove_all(job.job_dir);
  job.definition.replace(job.definition.find(dir_.path().string()), dir_.path().string().size(), ".");
  EXPECT_EQ(RunDefined(job).status, RunStatus::kOk);

  std::filesystem::remove_all(job.job_dir);
  job.environment["PART"] = "elsewhere";
  EXPECT_EQ(Exec::Run(job), kExecCannotStart);
  EXPECT_THAT(ResultOf(job).message, HasSubstr("elsewhere' does not exist on this node"));
}

TEST_F(Defined, RemovesItsFolderAndLogIfItEndedWell) {
  const Job job = MakeDefined("echo x >\"$2/weights\"\n" + std::string(kFiveSteps));
  EXPECT_EQ(RunDefined(job).status, RunStatus::kOk);
  EXPECT_FALSE(IsThere(DirOf(job)));
}

TEST_F(Defined, AVariableThatIsMissingIsNoResultOfThePoint) {
  const Job job = MakeDefined(kFiveSteps, "processes: one\nenv: {A: '{{env.SURELY_NOT_SET}}'}\n");
  EXPECT_EQ(Exec::Run(job), kExecCannotStart);
  const RunResult result = ResultOf(job);
  EXPECT_EQ(EndOf(result), InfrastructureReason::kStart);
  EXPECT_THAT(result.message, HasSubstr("env.SURELY_NOT_SET has no value here"));
}

TEST_F(Defined, AProgramThatIsMissingIsNoResultOfThePoint) {
  Job job = MakeDefined(kFiveSteps);
  std::filesystem::remove(dir_.path() / "mine.sh");
  EXPECT_EQ(Exec::Run(job), kExecCannotStart);
  EXPECT_EQ(EndOf(ResultOf(job)), InfrastructureReason::kStart);
}

TEST_F(Defined, ATracebackIsItsEnd) {
  const RunResult result = RunDefined(MakeDefined("python3 -c 'def f():\n  raise ValueError(\"a bad shape\")\nf()'\n"));
  EXPECT_EQ(result.status, RunStatus::kCrashed);
  EXPECT_EQ(result.message, "ValueError: a bad shape");
  EXPECT_EQ(result.evidence.at("exit_code"), "1");
}

TEST_F(Defined, AModuleThatIsMissingIsInfrastructures) {
  const RunResult result = RunDefined(MakeDefined("python3 -c 'import surely_not_there'\n"));
  EXPECT_EQ(EndOf(result), InfrastructureReason::kStart) << result.message;
  EXPECT_THAT(result.message, HasSubstr("No module named 'surely_not_there'"));
}

TEST_F(Defined, ASignalIsACrash) {
  const RunResult result = RunDefined(MakeDefined("echo 'step 1: 5 ms'; kill -SEGV $$\n"));
  EXPECT_EQ(result.status, RunStatus::kCrashed);
  EXPECT_THAT(result.message, HasSubstr("signal 11"));
}

TEST_F(Defined, OurMarkersAndBinaryBytesInItsLogAreNothing) {
  const RunResult result = RunDefined(
      MakeDefined("echo '{\"status\":\"ok\"}'; printf 'ridgeline\\033]0;x\\007 result \\377\\000\\200 12 ok\\n'; "
                  "echo '::ridgeline:: result'; head -c 3000000 /dev/urandom; echo\n" +
                  std::string(kFiveSteps)));
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.step_ns.median_ns, 96'500'000);
}

// Nearly all of it is a hole, within a line that nobody reads to its end.
TEST_F(Defined, ALogOfAGigabyteIsReadInLittleMemory) {
  const Job job = MakeDefined("truncate -s 1G /proc/self/fd/1; echo\n" + std::string(kFiveSteps));
  testing::WriteJob(job);
  const ExitStatus status = Start(job).Wait();
  EXPECT_TRUE(status.ok()) << Log();
  EXPECT_EQ(ResultOf(job).status, RunStatus::kOk) << ResultOf(job).message;
  EXPECT_EQ(ResultOf(job).step_ns.median_ns, 96'500'000);
  EXPECT_LT(status.rss_peak_bytes, int64_t{512} << 20);
}

TEST_F(Defined, AResultFileIsReadWhereItSaysSo) {
  Job job = MakeDefined("echo '{\"times\": [0.5, 0.1, 0.1, 0.1, 0.1]}' >\"$2/metrics.json\"\n",
                        "processes: one\nfile: '{{output_dir}}/metrics.json'\n");
  const size_t at = job.definition.find("metrics:\n");
  job.definition.resize(at);
  job.definition += "metrics: [{name: step_time, json: /times, unit: s, take: series}]\n";
  job.definition.replace(job.definition.find("result: patterns"), 16, "result: file");
  const RunResult result = RunDefined(job);
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.step_ns.median_ns, 100'000'000);
}

TEST_F(Defined, IgnoresAResultFileOfAnEarlierRun) {
  const std::string file = (dir_.path() / "metrics.json").string();
  const auto run = [&](const std::string& script) {
    WriteFile(file, R"({"time": 0.5})"
                    "\n");
    Job job = MakeDefined(script, "processes: one\ndirectory: " + dir_.path().string() + "\nfile: metrics.json\n");
    std::filesystem::remove_all(job.job_dir);
    job.definition.resize(job.definition.find("metrics:\n"));
    job.definition += "metrics: [{name: step_time, json: /time, unit: s, take: series}]\n";
    job.definition.replace(job.definition.find("result: patterns"), 16, "result: file");
    return RunDefined(job);
  };
  const RunResult old = run("");
  EXPECT_THAT(old.evidence.at("log_notes"), HasSubstr("its file was there before it started"));
  EXPECT_TRUE(old.step_ns.all_ns.empty());
  const std::string times = R"({"time": 0.5}\n{"time": 0.1}\n{"time": 0.1}\n{"time": 0.1}\n{"time": 0.1}\n)";
  const RunResult added = run("printf '" + times + "' >>" + file + "\n");
  EXPECT_EQ(added.status, RunStatus::kOk) << added.message;
  EXPECT_EQ(added.step_ns.all_ns.size(), 5U);
  const RunResult anew = run("printf '" + times + "' | sed s/0.5/0.6/ >" + file + "\n");
  EXPECT_EQ(anew.status, RunStatus::kOk) << anew.message;
  EXPECT_EQ(anew.step_ns.all_ns.size(), 5U);
}

TEST_F(Defined, StepsWithoutATimeAreTimedAsTheirLinesArrive) {
  const auto timed = [&](const std::string& script, const std::string& regex) {
    Job job = MakeDefined(script);
    std::filesystem::remove_all(job.job_dir);
    job.definition.resize(job.definition.find("metrics:\n"));
    job.definition += "metrics: [{name: step_time, regex: '" + regex + "', take: arrival}]\n";
    return RunDefined(job);
  };
  // A progress bar, whose line ends with the run.
  const RunResult bar =
      timed("for i in 0 1 2 3 4 5; do printf '\\r%s/5 [' $i; sleep 0.2; done; echo\n", R"((?P<step>\d+)/5 \[)");
  EXPECT_EQ(bar.status, RunStatus::kOk) << bar.message;
  EXPECT_EQ(bar.step_ns.all_ns.size(), 5U);
  EXPECT_GT(bar.step_ns.median_ns, 100'000'000);

  // Python does not buffer its output.
  const RunResult lines =
      timed("exec python3 -c 'import time\nfor i in range(5):\n  print(\"loss\", i)\n  time.sleep(0.2)'\n", "loss");
  EXPECT_EQ(lines.status, RunStatus::kOk) << lines.message;
  EXPECT_EQ(lines.evidence.at("step_times_found"), "4");
  EXPECT_GT(lines.step_ns.median_ns, 100'000'000);
}

TEST_F(Defined, OneThatKeepsTheContractSaysItsResultItself) {
  Job job = MakeDefined("");
  job.definition = fmt::format(
      "name: mine\nabout: x\nversion: \"1\"\ntested: log\nresult: contract\n"
      "command: [{}, ok, --spec, '{{{{spec_file}}}}', --result, '{{{{result_file}}}}']\nprocesses: one\n",
      testing::FakeProgram("fake_trainer").string());
  const RunResult result = RunDefined(job);
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
}

TEST_F(Defined, RanksAreOursOrItsOwn) {
  const char* say = "echo \"rank ${RANK:-none} of ${WORLD_SIZE:-none}\" >&2\n";
  Job ours = MakeDefined(say + std::string(kFiveSteps), "processes: ours\n", {{"ranks", 2}});
  ours.keep_logs = true;
  EXPECT_EQ(RunDefined(ours).status, RunStatus::kOk) << ResultOf(ours).message;
  EXPECT_THAT(ReadFile(DirOf(ours) / "log.txt"), HasSubstr("rank 0 of 2"));
  EXPECT_THAT(ReadFile(DirOf(ours) / "log.1.txt"), HasSubstr("rank 1 of 2"));

  std::filesystem::remove_all(ours.job_dir);
  Job its = MakeDefined(say + std::string(kFiveSteps), "processes: torchrun\n", {{"ranks", 2}});
  its.keep_logs = true;
  EXPECT_EQ(RunDefined(its).status, RunStatus::kOk);
  EXPECT_THAT(ReadFile(DirOf(its) / "log.txt"), HasSubstr("rank none of none"));
  EXPECT_FALSE(IsThere(DirOf(its) / "log.1.txt"));
}

TEST_F(Defined, TheFailedRankGivesTheReasonForRanksThatWeStart) {
  const Job job =
      MakeDefined("if [ $RANK = 1 ]; then echo 'RuntimeError: CUDA out of memory.'; exit 1; fi\nsleep 600\n",
                  "processes: ours\n", {{"ranks", 2}});
  testing::WriteJob(job);
  Start(job, 500).Wait();
  const RunResult result = ResultOf(job);
  EXPECT_EQ(result.status, RunStatus::kOomDevice) << result.message;
  EXPECT_EQ(result.evidence.at("rank"), "1");
}

TEST_F(Defined, ItContinuesWhereItKeptItsState) {
  Job job = MakeDefined("echo \"args $*\" >&2\n" + std::string(kFiveSteps),
                        "processes: one\nresume: ['--resume={{checkpoint_dir}}']\n",
                        {{"checkpoint", {{"dir", (dir_.path() / "ckpt").string()}}}});
  job.keep_logs = true;
  EXPECT_EQ(RunDefined(job).status, RunStatus::kOk);
  EXPECT_EQ(ReadFile(DirOf(job) / "log.txt").find("--resume"), std::string::npos);
  MakeDirs(dir_.path() / "ckpt");
  WriteFile(dir_.path() / "ckpt/state", "x");
  std::filesystem::remove_all(job.job_dir);
  EXPECT_EQ(RunDefined(job).status, RunStatus::kOk);
  EXPECT_THAT(ReadFile(DirOf(job) / "log.txt"), HasSubstr("--resume=" + (dir_.path() / "ckpt").string()));
}

}  // namespace
}  // namespace ridgeline::node
