// Detects a hanging trainer from its logs, with a clock that the tests move. Also tests exec, which ends such a
// trainer.
#include "node/hang_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <fstream>
#include <optional>

#include "run/consistency.h"
#include "run/job.h"
#include "run/result.h"
#include "tests/node/exec_fixture.h"

namespace ridgeline::node {
namespace {

using ::testing::HasSubstr;
using testing::ResultOf;

constexpr int64_t kSecond = 1'000'000'000;
constexpr const char* kOom =
    "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"t.py\"\n[rank3]: torch.OutOfMemoryError: CUDA out "
    "of "
    "memory. Tried to allocate 2 GiB.\n";
constexpr const char* kCrash = "Traceback (most recent call last):\n  File \"t.py\"\nKeyError: 'x'\n";
constexpr const char* kMetrics =
    "metrics:\n  - {name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, take: series}\n";

class Hanging : public ::testing::Test {
 protected:
  Hanging()
      : trainer_(trainers::ParseTrainer(
            std::string("name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\n") + kMetrics, "mine.yaml")) {
    spec_.warmup_steps = 1;
    spec_.steps = 4;
    for (const char* name : {"log.txt", "log.1.txt"}) Print("", name);
  }
  void Print(const std::string& text, const char* name = "log.txt") {
    std::ofstream(dir_ / name, std::ios::app) << text;
  }
  void Step(int64_t number) { Print(fmt::format("step {}: 5 ms\n", number)); }
  void Watched(const std::vector<std::filesystem::path>& elsewhere = {}) {
    watch_.emplace(trainer_, spec_, std::vector<std::filesystem::path>{dir_ / "log.txt", dir_ / "log.1.txt"}, elsewhere,
                   HangPatience(), clock_, [this] { return written_; });
  }
  // Looks every second, as exec does. Returns what it finds, or that the trainer goes on.
  StopReason After(int64_t seconds) {
    StopReason said = StopReason::kNone;
    for (int64_t i = 0; i < seconds && said == StopReason::kNone; ++i) {
      clock_.SleepNs(kSecond);
      said = watch_->Look();
    }
    return said;
  }

  TempDir dir_;
  trainers::Trainer trainer_;
  RunSpec spec_;
  FakeClock clock_;
  int64_t written_ = 0;
  std::optional<HangWatch> watch_;
};

TEST_F(Hanging, IfOneRankRunsOutOfMemoryTheOthersHaveAMinute) {
  Watched();
  Print(kOom);
  EXPECT_EQ(After(60), StopReason::kNone);
  Print("waiting for rank 3\n", "log.1.txt");
  EXPECT_EQ(After(1), StopReason::kSaidEnd);
}

TEST_F(Hanging, ASilentStartEndsAndABusyOneDoesNot) {
  int64_t used_ns = 0;
  int64_t used_each_s = 0;
  const auto watch = [&] {
    watch_.emplace(
        trainer_, spec_, std::vector<std::filesystem::path>{dir_ / "log.txt"}, std::vector<std::filesystem::path>(),
        HangPatience(), clock_, [this] { return written_; }, [&] { return used_ns += 60 * used_each_s; });
  };
  watch();
  used_each_s = kSecond / 100;  // threads that poll
  EXPECT_EQ(After(kUsualQuietStartS - 2), StopReason::kNone);
  EXPECT_EQ(After(60), StopReason::kMeetLimit);
  watch();
  used_each_s = kSecond;
  EXPECT_EQ(After(3 * kUsualQuietStartS), StopReason::kNone) << "it compiles";
  used_each_s = 0;
  for (int i = 0; i < 4; ++i) {
    written_ += int64_t{1} << 30;
    EXPECT_EQ(After(kUsualQuietStartS - 120), StopReason::kNone) << "it downloads";
  }
  for (int i = 0; i < 4; ++i) {
    Print("waiting\n");
    EXPECT_EQ(After(kUsualQuietStartS - 120), StopReason::kNone) << "it prints";
  }
  for (int i = 0; i < 4; ++i) {
    watch_->NotBegun();
    EXPECT_EQ(After(kUsualQuietStartS - 120), StopReason::kNone) << "its container is not ready";
  }
  Step(1);
  EXPECT_EQ(After(3 * kUsualQuietStartS), StopReason::kNone) << "it has begun";
}

TEST_F(Hanging, ARunThatContinuesHasRecovered) {
  Watched();
  Step(1);
  Print(kOom, "log.1.txt");
  After(30);
  Step(2);
  EXPECT_EQ(After(40), StopReason::kNone) << "another rank may have done that step before";
  Step(3);
  EXPECT_EQ(After(600), StopReason::kNone);
  Print(kOom, "log.1.txt");
  EXPECT_EQ(After(600), StopReason::kNone) << "the same words are overcome";
}

TEST_F(Hanging, LongStepsHaveMoreTime) {
  Watched();
  Step(1);
  After(100);
  Step(2);
  After(1);
  Print(kOom);
  EXPECT_EQ(After(299), StopReason::kNone);
  EXPECT_EQ(After(10), StopReason::kSaidEnd);
}

TEST_F(Hanging, AnErrorBeforeTheFirstStepMayBeHarmless) {
  Watched();
  Print(kCrash);
  EXPECT_EQ(After(600), StopReason::kNone);
  EXPECT_EQ(watch_->AtTimeLimit(), StopReason::kTimeLimit);
}

TEST_F(Hanging, ACrashCountsIfNothingIsPrintedAnyMore) {
  Watched();
  Step(1);
  Print(kCrash);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(After(50), StopReason::kNone);
    Print("still here\n", "log.1.txt");
  }
  EXPECT_EQ(After(62), StopReason::kSaidEnd);
}

TEST_F(Hanging, OtherNodesLogsAreReadButNotThoseOfAnEarlierAttempt) {
  Print(kOom, "log.8.txt");
  std::filesystem::last_write_time(dir_ / "log.8.txt",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  Watched({dir_ / "log.8.txt", dir_ / "log.16.txt"});
  EXPECT_EQ(After(600), StopReason::kNone);
  Print(kOom, "log.16.txt");
  EXPECT_EQ(After(80), StopReason::kSaidEnd);
}

TEST_F(Hanging, StepsThatAreDoneAreFollowedByTheEnd) {
  for (const int64_t first : {0, 1}) {
    std::filesystem::remove(dir_ / "log.txt");
    Print("");
    Watched();
    for (int64_t i = first; i < first + 4; ++i) Step(i);
    EXPECT_EQ(After(600), StopReason::kNone) << "one is missing";
    Step(first + 4);
    EXPECT_EQ(After(30), StopReason::kNone);
    Print("saved\n");
    EXPECT_EQ(After(60), StopReason::kNone) << "it still prints";
    EXPECT_EQ(After(1800), StopReason::kStepsDone);
    EXPECT_EQ(watch_->AtTimeLimit(), StopReason::kStepsDone);
  }
}

TEST_F(Hanging, ARunThatSavesOrEvaluatesIsNotDone) {
  Watched();
  for (int64_t i = 1; i <= 5; ++i) Step(i);
  for (int i = 0; i < 100; ++i) {
    written_ += 20'000'000;
    EXPECT_EQ(After(50), StopReason::kNone) << "it writes a checkpoint file";
  }
  Print("Evaluating 5000 batches\n");
  EXPECT_EQ(After(1000), StopReason::kNone);
  EXPECT_EQ(watch_->AtTimeLimit(), StopReason::kStepsDone);
  Print("eval loss 2.5\n");
  EXPECT_EQ(After(65), StopReason::kStepsDone);
}

TEST_F(Hanging, AnErrorLoggedBeforeTheTimeLimitCounts) {
  Watched();
  Print(kOom);
  EXPECT_EQ(watch_->AtTimeLimit(), StopReason::kSaidEnd);
  Watched();
  for (int64_t i = 1; i <= 3; ++i) Step(i);
  EXPECT_EQ(watch_->AtTimeLimit(), StopReason::kTimeLimit) << "it went on";
  Print(kCrash);
  EXPECT_EQ(watch_->AtTimeLimit(), StopReason::kSaidEnd);
}

class ExecHanging : public Exec {
 protected:
  // A job of one point with five steps, whose trainer is a shell script.
  Job MakeDefined(const std::string& script, const std::string& processes = "one", int64_t ranks = 1) {
    const std::filesystem::path file = dir_ / "mine.sh";
    WriteFile(file, "#!/bin/sh\n" + script);
    ::chmod(file.c_str(), 0755);
    Job job = MakeJob({});
    std::vector<Problem> problems;
    const RunSpec spec = BuildSpec(
        {{"model", "llama-10m"}, {"warmup_steps", 1}, {"steps", 4}, {"trainer", "mine"}, {"ranks", ranks}}, problems);
    EXPECT_TRUE(problems.empty());
    job.points = {{PointId(spec), spec, 0}};
    job.trainer.clear();
    std::filesystem::remove_all(job.job_dir);  // left from an earlier one
    job.definition =
        fmt::format("name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\ncommand: [{}]\nprocesses: {}\n{}",
                    file.string(), processes, kMetrics);
    testing::WriteJob(job);
    return job;
  }
  Child StartIt(const Job& job, const std::map<std::string, std::string>& environment = {}) {
    SpawnOptions options;
    options.environment = environment;
    options.stdout_file = options.stderr_file = dir_ / "exec.log";
    options.new_process_group = options.die_with_parent = true;
    return Child::Spawn({testing::FakeProgram("mini_ridgeline"), "exec", JobFile(job), "2000", "500"}, options);
  }
  RunResult ResultOfIt(const std::string& script) {
    const Job job = MakeDefined(script);
    EXPECT_EQ(StartIt(job).Wait().exit_code, 0) << Log();
    EXPECT_TRUE(NothingIsLeft());
    return ResultOf(job);
  }
};

const std::string kFive = "for i in 1 2 3 4 5; do echo \"step $i: $((100 - i)) ms\"; done\n";
const std::string kPrintsOom = "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.'\n";

TEST_F(ExecHanging, TheLogDecidesTheEndOfARunThatWasKilled) {
  for (const char* at_the_end : {"trap 'exit 0' TERM\n", "trap 'echo Received SIGTERM; exit 143' TERM\n"}) {
    const RunResult result = ResultOfIt(at_the_end + kPrintsOom + "while :; do sleep 0.1; done\n");
    EXPECT_EQ(result.status, RunStatus::kOomDevice) << at_the_end << result.message;
    EXPECT_THAT(result.message, HasSubstr("2 GiB"));
    EXPECT_THAT(result.evidence.at("hung"), HasSubstr("it was ended"));
  }
}

TEST_F(ExecHanging, ARunThatHasDoneItsStepsKeepsItsResult) {
  const RunResult result = ResultOfIt(kFive + "sleep 600\n");
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.step_ns.median_ns, 96'500'000);
  EXPECT_THAT(result.evidence.at("hung"), HasSubstr("did not end"));
}

TEST_F(ExecHanging, EachNodeEndsItsPart) {
  const Job job = MakeDefined("if [ \"$RANK\" = 1 ]; then " + kPrintsOom + "fi\nsleep 600\n", "ours", 2);
  const auto node = [&](int rank) {
    return StartIt(job, {{"RIDGELINE_NNODES", "2"},
                         {"RIDGELINE_NODE_RANK", std::to_string(rank)},
                         {"MASTER_ADDR", "127.0.0.1"},
                         {"MASTER_PORT", "29400"}});
  };
  Child first = node(0);
  Child second = node(1);
  EXPECT_EQ(first.Wait().exit_code, 0) << Log();
  EXPECT_EQ(second.Wait().exit_code, 0) << Log();
  EXPECT_EQ(ResultOf(job).status, RunStatus::kOomDevice) << ResultOf(job).message;
}

}  // namespace
}  // namespace ridgeline::node
