// Runs the real trainer as a process.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "base/files.h"
#include "base/help_form.h"
#include "base/json.h"
#include "base/process.h"
#include "predict/memory_forecast.h"
#include "run/result.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

namespace fs = std::filesystem;

class TrainCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("train." + std::to_string(::getpid()));
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  static Captured Trainer(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RIDGELINE_BINARY_DIR "/bin/ridgeline-train");
    return ridgeline::Run(arguments);
  }
  Captured RunSpecFile(const Json& values) {
    WriteFileAtomic(dir_ / "spec.json", EncodeSpec(SpecFrom(values)));
    fs::remove(dir_ / "result.json");
    return Trainer({"--spec", (dir_ / "spec.json").string(), "--result", (dir_ / "result.json").string()});
  }
  RunResult Result() { return DecodeResult(ReadJsonFile(dir_ / "result.json"), "result"); }

  fs::path dir_;
};

TEST_F(TrainCommandTest, WritesTheResultOfASpec) {
  const Captured run = RunSpecFile(TinyModel("llama"));
  ASSERT_TRUE(run.status.ok()) << run.stderr_text;
  EXPECT_EQ(Result().status, RunStatus::kOk);
  EXPECT_NE(run.stdout_text.find("step 7/7"), std::string::npos);
}

// Otherwise the first opened files would get the descriptors of the streams to which it prints its steps.
TEST_F(TrainCommandTest, ClosedStandardStreamsHarmNoFile) {
  Json values = TinyModel("llama");
  values["checkpoint"] = {{"dir", (dir_ / "checkpoints").string()}, {"every_steps", 2}};
  const std::string spec = EncodeSpec(SpecFrom(values));
  WriteFileAtomic(dir_ / "spec.json", spec);
  const Captured run =
      ridgeline::Run({"/bin/sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh", RIDGELINE_BINARY_DIR "/bin/ridgeline-train",
                      "--spec", (dir_ / "spec.json").string(), "--result", (dir_ / "result.json").string()});
  EXPECT_TRUE(run.status.ok());
  EXPECT_EQ(ReadFile(dir_ / "spec.json"), spec);
  EXPECT_EQ(Result().status, RunStatus::kOk);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(dir_ / "checkpoints")) {
    if (!entry.is_regular_file()) continue;
    ++files;
    EXPECT_EQ(ReadFile(entry.path()).find("tokens/s"), std::string::npos) << entry.path();
  }
  EXPECT_GT(files, 0U);
}

TEST_F(TrainCommandTest, PrintsTheBudgetOfAStepAndTrainsNothing) {
  const Captured run = Trainer({"--model", "llama-8b", "--precision", "fp8", "--seq-length", "8192", "--budget"});
  ASSERT_TRUE(run.status.ok()) << run.stderr_text;
  for (const char* said : {"An H200 took 1.02 to 1.17 times it", "linear products and head", "not in the budget",
                           "\nstep ", "tokens/s;"}) {
    EXPECT_NE(run.stdout_text.find(said), std::string::npos) << said << " is missing of\n" << run.stdout_text;
  }
  EXPECT_NE(run.stdout_text.find("on one H200 as described, 4.3 TB/s"), std::string::npos) << run.stdout_text;
  EXPECT_EQ(run.stdout_text.find("step 1/"), std::string::npos);
  const Captured other = Trainer({"--model", "llama-1b", "--device", "meta", "--gpu", "b200", "--budget"});
  EXPECT_NE(other.stdout_text.find("on one B200 as described, 7.2 TB/s"), std::string::npos) << other.stdout_text;
  const Captured unknown = Trainer({"--model", "llama-1b", "--device", "meta", "--gpu", "l40s", "--budget"});
  EXPECT_EQ(unknown.status.exit_code, 2);
  EXPECT_NE(unknown.stderr_text.find("--budget does not know how fast gpu: l40s is"), std::string::npos);
  EXPECT_NE(unknown.stderr_text.find("it knows that of a100, b200, b300, gb200, gb300, h100, h200"), std::string::npos)
      << unknown.stderr_text;
}

// Runs the programs as installed, with NVIDIA's libraries or without. A device without its requirements gives a message
// and no figure.
TEST_F(TrainCommandTest, WithoutAGpuADeviceIsMissedInWords) {
  const Captured cards = Trainer({"--gpus"});
  ASSERT_TRUE(cards.status.ok()) << cards.stderr_text;
  if (!cards.stdout_text.starts_with("no GPUs: ")) GTEST_SKIP() << cards.stdout_text;
  Json values = TinyModel("llama");
  values.update({{"device", "cuda"}, {"gpu", "h200"}});
  const Captured run = RunSpecFile(values);
  EXPECT_EQ(run.status.exit_code, static_cast<int>(TrainerExit::kNode)) << run.stderr_text;
  const RunResult result = Result();
  EXPECT_EQ(result.reason, InfrastructureReason::kNode);
  EXPECT_FALSE(result.message.empty());
  EXPECT_FALSE(result.hint.empty());
  EXPECT_EQ(result.throughput.steady_tokens_per_s, 0);
}

TEST_F(TrainCommandTest, NumbersOnTheCommandLineNeitherWrapNorRound) {
  for (const char* flag : {"--batch-size", "--seed", "--steps", "--seq-length"}) {
    for (const char* value : {"9223372036854775808", "99999999999999999999", "1e300"}) {
      const Captured run = Trainer({"--model", "llama-5m", "--device", "meta", flag, value});
      EXPECT_EQ(run.status.exit_code, 2) << flag << " " << value;
      EXPECT_NE(run.stderr_text.find("and must be between"), std::string::npos) << run.stderr_text;
    }
  }
  for (const auto& [flag, value] : {std::pair{"--num-heads", "9223372036854775807"},
                                    {"--num-heads", "99999999999999999999"},
                                    {"--head-dim", "4611686018427387904"},
                                    {"--num-iters", "99999999999999999999"},
                                    {"--num-layers", "9223372036854775807"}}) {
    const Captured run = Trainer({"--device", "meta", flag, value});
    EXPECT_EQ(run.status.exit_code, 2) << flag << " " << value << run.stdout_text;
  }
}

TEST_F(TrainCommandTest, ShowsTerminalCodesOfErrorsWithoutObeyingThem) {
  const Captured run = Trainer({"--model", "\x1b[2J\xC2\x9B\xE2\x80\xAE\nx"});
  EXPECT_EQ(run.status.exit_code, 2);
  EXPECT_NE(run.stderr_text.find("\\x1b[2J"), std::string::npos) << run.stderr_text;
  EXPECT_EQ(run.stderr_text.find('\x1b'), std::string::npos);
}

TEST_F(TrainCommandTest, ResidentMemoryIsThePlanAndAConstant) {
#ifdef RIDGELINE_SANITIZED
  GTEST_SKIP() << "a sanitizer's own memory is larger";
#endif
  int64_t largest = 0;
  for (const Json& shape : {Json{{"model", "llama-10m"}}, Json{{"model", "llama-10m"}, {"batch_size", 8}},
                            Json{{"model", "gpt-10m"}, {"precision", "fp32"}}, Json{{"model", "llama-25m"}}}) {
    Json values = shape;
    values.update({{"warmup_steps", 1}, {"steps", 1}});
    const Captured run = RunSpecFile(values);
    ASSERT_TRUE(run.status.ok()) << run.stderr_text;
    const MemoryFigures memory = Result().memory;
    const int64_t beside = memory.rss_peak_bytes - memory.planned_peak_bytes;
    std::cout << shape.dump() << ": planned " << memory.planned_peak_bytes << ", resident peak "
              << memory.rss_peak_bytes << ", beside the plan " << beside << "\n";
    largest = std::max(largest, beside);
  }
  std::cout << "largest beside the plan: " << largest << ", constant " << predict::kProcessBaseBytes << "\n";
  EXPECT_LE(largest, predict::kProcessBaseBytes);
}

TEST_F(TrainCommandTest, MetaPlansWhatTheCpuTakes) {
  Json values = TinyModel("gpt");
  RunSpecFile(values);
  const int64_t cpu = Result().memory.planned_peak_bytes;
  values["device"] = "meta";
  ASSERT_TRUE(RunSpecFile(values).status.ok());
  EXPECT_EQ(Result().memory.planned_peak_bytes, cpu);
  EXPECT_EQ(Result().provenance, Provenance::kPredicted);
  EXPECT_TRUE(Result().step_ns.all_ns.empty());
}

TEST_F(TrainCommandTest, ExitCodesFollowTheContract) {
  EXPECT_EQ(RunSpecFile({{"model", "llama-64b"}}).status.exit_code, static_cast<int>(TrainerExit::kOomHost));
  EXPECT_EQ(Result().status, RunStatus::kOomHost);
  EXPECT_EQ(Trainer({"--spec", "/nonexistent"}).status.exit_code, static_cast<int>(TrainerExit::kCrashed));
  WriteFileAtomic(dir_ / "bad.json", R"({"version": 1, "layrs": 2})");
  const Captured bad = Trainer({"--spec", (dir_ / "bad.json").string()});
  EXPECT_EQ(bad.status.exit_code, static_cast<int>(TrainerExit::kInvalid));
  EXPECT_NE(bad.stderr_text.find("did you mean 'layers'"), std::string::npos) << bad.stderr_text;
  EXPECT_EQ(Trainer({"--no-such-flag"}).status.exit_code, static_cast<int>(TrainerExit::kInvalid));
}

TEST_F(TrainCommandTest, HelpFitsANarrowTerminal) {
  const Captured help = Trainer({"--help"});
  EXPECT_EQ(help.status.exit_code, 0);
  std::istringstream lines(help.stdout_text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kHelpColumns) << line;
}

TEST_F(TrainCommandTest, SpeaksFsdpPysLanguage) {
  const Captured run = Trainer({"--num-layers", "2", "--num-heads", "4", "--head-dim", "16", "--batch-size", "2",
                                "--seq-length", "64", "--num-iters", "3", "--checkpoint-layer", "transformerlayer"});
  ASSERT_TRUE(run.status.ok()) << run.stderr_text;
  for (const char* line :
       {"[GPU-0] WORLD_SIZE = 1\n", "[GPU-0] Using precision preset: bf16\n",
        "[GPU-0] Training configuration: 2 layers", "[GPU-0] Pre-FSDP memory use = ", "[GPU-0] Post-FSDP memory use = ",
        "[GPU-0] Training Time: ", "[GPU-0] Avg. Iter. Time: ", "[GPU-0] Peak Memory Use: "}) {
    EXPECT_NE(run.stdout_text.find(line), std::string::npos) << line << "\n" << run.stdout_text;
  }
}

TEST_F(TrainCommandTest, FieldsAreFlags) {
  const Captured run =
      Trainer({"--model", "llama-10m", "--device", "meta", "--batch-size", "4", "--tied-head", "false"});
  ASSERT_TRUE(run.status.ok()) << run.stderr_text;
  EXPECT_NE(run.stdout_text.find("batch 4 x 512"), std::string::npos);
  const Captured mixed = Trainer({"--model", "llama-10m", "--num-layers", "3"});
  EXPECT_EQ(mixed.status.exit_code, static_cast<int>(TrainerExit::kInvalid));
}

TEST_F(TrainCommandTest, AResultThatCannotBeWrittenIsTheStoragesFault) {
  const Captured run =
      Trainer({"--model", "llama-10m", "--device", "meta", "--result", (dir_ / "nowhere/result.json").string()});
  EXPECT_EQ(run.status.exit_code, static_cast<int>(TrainerExit::kStorage));
  EXPECT_NE(run.stderr_text.find("nowhere"), std::string::npos);
}

TEST_F(TrainCommandTest, VerifyExitsOneOutsideItsBounds) {
  const std::string cases = RIDGELINE_SOURCE_DIR "/tests/engine/cases/";
  EXPECT_EQ(Trainer({"--verify", cases + "gpt-tiny.json"}).status.exit_code, 0);
  EXPECT_EQ(Trainer({"--verify", cases + "gpt-tiny.json", "--precision", "bf16"}).status.exit_code, 0);
  Json document = ReadJsonFile(cases + "gpt-tiny.json");
  document["loss"] = 1.0;
  WriteFileAtomic(dir_ / "wrong.json", document.dump());
  fs::copy_file(cases + "gpt-tiny.safetensors", dir_ / "wrong.safetensors");
  const Captured wrong = Trainer({"--verify", (dir_ / "wrong.json").string()});
  EXPECT_EQ(wrong.status.exit_code, 1);
  EXPECT_NE(wrong.stdout_text.find("FAIL"), std::string::npos);
}

}  // namespace
}  // namespace ridgeline::engine
