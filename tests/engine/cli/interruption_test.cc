// The real trainer, asked to stop, killed at any moment, and without room on its disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "run/result.h"
#include "tests/base/eventually.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int64_t kPreempted = static_cast<int64_t>(TrainerExit::kPreempted);

class InterruptionTest : public ::testing::Test {
 protected:
  static Json Values(int64_t steps) {
    Json values = TinyModel("llama");
    values.update({{"warmup_steps", 0}, {"steps", steps}, {"dropout", 0.1}, {"grad_clip", 1.0}});
    return values;
  }
  void WriteSpec(const Json& values, int64_t every_steps = 0) {
    RunSpec spec = SpecFrom(values);
    if (every_steps > 0) {
      spec.checkpoint_dir = dir_ / "ck";
      spec.checkpoint_every_steps = every_steps;
    }
    WriteFileAtomic(dir_ / "spec.json", EncodeSpec(spec));
  }
  // `wrapper`: the command that runs the trainer.
  Child Start(const std::vector<std::string>& wrapper = {}) {
    for (const char* old : {"result.json", "log.txt", "progress"}) fs::remove(dir_ / old);
    std::vector<std::string> argv = wrapper;
    argv.insert(argv.end(), {RIDGELINE_BINARY_DIR "/bin/ridgeline-train", "--spec", dir_ / "spec.json", "--result",
                             dir_ / "result.json"});
    SpawnOptions options;
    options.stdout_file = options.stderr_file = dir_ / "log.txt";
    options.environment = {{"OMP_NUM_THREADS", "1"}, {"RIDGELINE_PROGRESS", dir_ / "progress"}};
    options.new_process_group = true;
    options.die_with_parent = true;
    return Child::Spawn(argv, options);
  }
  std::string Log() const { return ReadTail(dir_ / "log.txt", 1 << 20); }
  RunResult Result() const { return DecodeResult(ReadJsonFile(dir_ / "result.json"), "result"); }
  // Steps the running trainer has reported; 0 before the first.
  int64_t StepsDone() const { return std::atoll(ReadTail(dir_ / "progress", 80).c_str()); }
  void WaitForStep(int64_t step) const {
    ASSERT_TRUE(testing::Eventually([&] { return StepsDone() >= step; })) << Log();
  }
  std::vector<double> WholeSeries(const Json& values) {
    WriteSpec(values);
    EXPECT_TRUE(Start().Wait().ok()) << Log();
    return Result().loss;
  }

  TempDir dir_;
};

TEST_F(InterruptionTest, ToldToLeaveItFinishesTheStepSavesAndSaysPreempted) {
  const Json values = Values(1000);
  const std::vector<double> whole = WholeSeries(values);
  WriteSpec(values, 1000);
  int64_t last_step = 0;
  for (const int signal : {SIGTERM, SIGUSR1}) {
    Child child = Start();
    WaitForStep(last_step + 20);
    child.Signal(signal);
    const ExitStatus status = child.Wait();
    ASSERT_EQ(status.signal, 0);
    ASSERT_EQ(status.exit_code, kPreempted) << Log();
    const RunResult result = Result();
    EXPECT_EQ(result.reason, InfrastructureReason::kPreempted);
    const auto step = static_cast<int64_t>(result.loss.size());
    EXPECT_GE(step, last_step + 20);
    EXPECT_EQ(result.evidence.at("checkpoint_step"), std::to_string(step));
    if (last_step > 0) {
      EXPECT_EQ(result.evidence.at("resumed_from_step"), std::to_string(last_step));
    }
    last_step = step;
  }
  EXPECT_TRUE(Start().Wait().ok()) << Log();
  EXPECT_EQ(Result().loss, whole);
}

TEST_F(InterruptionTest, WithoutAFolderItLeavesWithoutSaving) {
  WriteSpec(Values(1'000'000));
  Child child = Start();
  WaitForStep(1);
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait().exit_code, kPreempted);
  EXPECT_THAT(Log(), HasSubstr("nothing was saved, since no checkpoint.dir is set"));
  // A person's Ctrl-C ends it at once.
  Child again = Start();
  WaitForStep(1);
  again.Signal(SIGINT);
  EXPECT_EQ(again.Wait().signal, SIGINT);
}

TEST_F(InterruptionTest, KilledAtAnyMomentItLosesNoMoreThanTheStepsSinceItSaved) {
  constexpr int64_t kEvery = 10;
  constexpr int kKills = 24;
  const Json values = Values(300);
  const std::vector<double> whole = WholeSeries(values);
  WriteSpec(values, kEvery);
  std::mt19937 random(11);
  int64_t reached = 0;  // the furthest step that any run reported
  int kills = 0;
  for (int attempt = 0; attempt < 10 * kKills; ++attempt) {
    Child child = Start();
    if (kills < kKills) {
      // At some time during start, steps or saving: before its first step, or after some steps.
      if (random() % 4 != 0) WaitForStep(1);
      ::usleep(static_cast<useconds_t>(random() % 30'000));
      child.Signal(SIGKILL);
    }
    const ExitStatus status = child.Wait();
    const std::string log = Log();
    const size_t continued = log.find("continuing after step ");
    const int64_t from = continued == std::string::npos ? 0 : std::atoll(log.c_str() + continued + 22);
    // The newest save before any completed step is there. (If it is killed at once, it prints nothing.)
    if (StepsDone() > 0) {
      EXPECT_GE(from, (reached - 1) / kEvery * kEvery) << log;
    }
    reached = std::max(reached, StepsDone());
    if (status.signal == SIGKILL) {
      ++kills;
      continue;
    }
    ASSERT_EQ(status.exit_code, 0) << log;
    if (kills == kKills) break;
    fs::remove_all(dir_ / "ck");  // it finished before the kill
    reached = 0;
  }
  EXPECT_EQ(kills, kKills);
  EXPECT_EQ(Result().loss, whole);
  EXPECT_EQ(Result().step_ns.all_ns.size(), whole.size());
  for (const auto& entry : fs::directory_iterator(dir_ / "ck")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".step-")) << entry.path();
  }
}

TEST_F(InterruptionTest, WithoutRoomOnTheDiskItGoesOnAndSaysSo) {
  const Json values = Values(12);
  const std::vector<double> whole = WholeSeries(values);
  WriteSpec(values, 4);
  // Files of up to 50 kB: too small for the weights, large enough for the log and the result.
  ASSERT_TRUE(Start({"/bin/sh", "-c", "ulimit -f 100; exec \"$@\"", "sh"}).Wait().ok()) << Log();
  EXPECT_THAT(Log(), HasSubstr("the state after step 4 was not saved: cannot write"));
  EXPECT_EQ(Result().status, RunStatus::kOk);
  EXPECT_EQ(Result().loss, whole);
  EXPECT_THAT(Result().evidence.at("checkpoint_error"), HasSubstr("cannot write"));
  EXPECT_FALSE(Result().evidence.contains("checkpoint_saves"));
  ASSERT_TRUE(Start().Wait().ok()) << Log();  // with room again it starts anew, because there is no checkpoint
  EXPECT_FALSE(Result().evidence.contains("resumed_from_step"));
  EXPECT_EQ(Result().evidence.at("checkpoint_saves"), "3");
}

TEST_F(InterruptionTest, ANamedFolderIsContinuedFromTheCommandLine) {
  const std::string trainer = RIDGELINE_BINARY_DIR "/bin/ridgeline-train";
  std::vector<std::string> argv = {trainer,     "--family",
                                   "llama",     "--layers",
                                   "1",         "--hidden",
                                   "16",        "--heads",
                                   "2",         "--ffn",
                                   "32",        "--vocab",
                                   "64",        "--seq-length",
                                   "8",         "--warmup-steps",
                                   "0",         "--steps",
                                   "6",         "--checkpoint-dir",
                                   dir_ / "ck", "--checkpoint-every-steps",
                                   "2",         "--checkpoint-keep",
                                   "9"};
  ASSERT_TRUE(ridgeline::Run(argv).status.ok());
  argv.insert(argv.end(), {"--resume", dir_ / "ck/step-00000002"});
  const Captured resumed = ridgeline::Run(argv);
  EXPECT_TRUE(resumed.status.ok()) << resumed.stderr_text;
  EXPECT_THAT(resumed.stdout_text, HasSubstr("step 3/6"));
  fs::remove(dir_ / "ck/step-00000002/model-00001-of-00001.safetensors");
  const Captured missing = ridgeline::Run(argv);
  EXPECT_EQ(missing.status.exit_code, static_cast<int>(TrainerExit::kInvalid));
  EXPECT_THAT(missing.stderr_text, HasSubstr("model-00001-of-00001.safetensors is missing"));
}

}  // namespace
}  // namespace ridgeline::engine
