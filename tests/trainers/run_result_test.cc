// A log, read, as a result: figures, what they contradict, and how it ended.
#include "trainers/run_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "run/presets.h"
#include "run/spec.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Trainer& Mine() {
  static const Trainer trainer = ParseTrainer(R"(name: mine
about: one line
version: "1.0"
tested: log
result: patterns
metrics:
  - {name: step_time, regex: 'step (?P<step>\d+): (?P<value>\S+) ms', unit: ms, take: series}
  - {name: step_time, regex: 'plain (\S+) ms', unit: ms, take: series}
  - {name: mean_step_time, regex: 'mean (\S+) ms', unit: ms}
  - {name: tokens_per_s, regex: 'rate (\S+)', unit: tokens/s/GPU, take: series}
  - {name: tokens_per_s, regex: 'all (\S+) tok', unit: tokens/s}
  - {name: loss, regex: 'loss (\S+)', take: series}
  - {name: device_peak, regex: 'device (\S+) GiB', unit: GiB, take: max}
  - {name: host_peak, regex: 'host (\S+) MB', unit: MB, take: max}
  - {name: parameters, regex: 'parameters (\S+)'}
  - {name: tflops_per_gpu, regex: 'tflops (\S+)', unit: TFLOP/s/GPU}
  - {name: version, regex: 'mine (\S+)'}
)",
                                              "mine.yaml");
  return trainer;
}

// 1000 tokens a step, two steps of warm-up and four that are measured.
RunSpec Spec() {
  std::vector<Problem> problems;
  return BuildSpec({{"model", "llama-10m"}, {"batch_size", 10}, {"seq_length", 50}, {"ranks", 2}, {"steps", 4}},
                   problems);
}

RunResult Read(const std::string& log, int exit_code = 0, const RunSpec& spec = Spec()) {
  ReadingOptions options;
  options.exit_code = exit_code;
  options.tokens_per_step = 1000;
  const Reading reading = ReadLog(
      Mine(), [&](const auto& feed) { feed(log); }, options);
  return ResultOf(Mine(), reading, spec);
}

std::string Steps(int first, int last, int every = 1) {
  std::string log;
  for (int step = first; step <= last; step += every)
    log += fmt::format("step {}: {} ms, loss {}\n", step, 100 - step, 9 - step);
  return log;
}

TEST(RunResultOfALog, AValueAStepIsTheSeries) {
  const RunResult result = Read("mine 1.4\n" + Steps(0, 5) + "device 2 GiB\nhost 3 MB\n");
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_THAT(result.step_ns.all_ns,
              ElementsAre(100'000'000, 99'000'000, 98'000'000, 97'000'000, 96'000'000, 95'000'000));
  EXPECT_EQ(result.step_ns.median_ns, 96'500'000) << "of the four measured steps";
  EXPECT_DOUBLE_EQ(result.throughput.steady_tokens_per_s, 1000 / 0.0965);
  EXPECT_DOUBLE_EQ(result.throughput.cold_tokens_per_s, 6000 / 0.585);
  EXPECT_THAT(result.loss, ElementsAre(9, 8, 7, 6, 5, 4));
  EXPECT_EQ(result.memory.device_peak_bytes, int64_t{2} << 30);
  EXPECT_EQ(result.memory.rss_peak_bytes, 3'000'000);
  EXPECT_EQ(result.environment.at("version"), "1.4");
  EXPECT_EQ(result.environment.at("trainer"), "mine");
  EXPECT_EQ(result.parameters, 0) << "what it does not say is not known";
  EXPECT_EQ(result.flops.model_causal, ModelFlops(Spec()).model_causal);
}

TEST(RunResultOfALog, WhereItLogsSomeStepsTheWarmUpIsLeftOutByTheirNumbers) {
  RunSpec spec = Spec();
  spec.steps = 8;                                         // ten in all
  const RunResult even = Read(Steps(2, 10, 2), 0, spec);  // each of two: step 2's are the two of warm-up
  EXPECT_EQ(even.status, RunStatus::kOk) << even.message;
  EXPECT_EQ(even.step_ns.median_ns, 93'000'000) << "of 96, 94, 92 and 90";
  EXPECT_THAT(even.step_ns.all_ns, IsEmpty());
  EXPECT_EQ(even.evidence.at("step_times_found"), "5");
  const RunResult plain = Read("plain 50 ms\nplain 10 ms\nplain 12 ms\n", 0, spec);
  EXPECT_EQ(plain.step_ns.median_ns, 11'000'000) << "without numbers the first is the warm-up's share";
}

TEST(RunResultOfALog, ARateOfEachRankIsOfAllOfThem) {
  const RunResult result = Read("rate 1\nrate 500\nrate 500\n");
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_DOUBLE_EQ(result.throughput.steady_tokens_per_s, 1000);
  EXPECT_EQ(result.step_ns.median_ns, 0);
}

TEST(RunResultOfALog, RanksThatShareAModelShareItsTokensAndItsWork) {
  RunSpec spec = Spec();
  spec.ranks = 8;
  spec.tensor_parallel = 2;
  spec.pipeline_parallel = 2;
  const RunResult split = Read("rate 5\n", 0, spec);
  EXPECT_EQ(split.tokens_per_step, 1000) << "of two data-parallel ranks";
  EXPECT_DOUBLE_EQ(split.throughput.steady_tokens_per_s, 40) << "a rate of each GPU is of all eight";
  EXPECT_DOUBLE_EQ(split.flops.model_causal * 4, ModelFlops(Spec()).model_causal);
}

// Embedding and head share their weights, and lie on the first stage and on the last.
TEST(RunResultOfALog, APipelineMayCountSharedWeightsTwice) {
  RunSpec spec = Spec();
  ASSERT_TRUE(spec.tied_head);
  const int64_t once = CountParameters(spec);
  const std::string twice = fmt::format("parameters {}\n", once + spec.vocab * spec.hidden);
  EXPECT_EQ(Read(Steps(0, 5) + twice, 0, spec).status, RunStatus::kInvalid);
  spec.ranks = 4;
  spec.pipeline_parallel = 2;
  EXPECT_EQ(Read(Steps(0, 5) + twice, 0, spec).status, RunStatus::kOk);
  EXPECT_EQ(Read(Steps(0, 5) + fmt::format("parameters {}\n", once), 0, spec).status, RunStatus::kOk);
}

TEST(RunResultOfALog, AMeanOfAllStepsSaysNothingOfTheSteadyOnes) {
  const RunResult result = Read("mean 500 ms\n");
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_DOUBLE_EQ(result.throughput.cold_tokens_per_s, 2000);
  EXPECT_EQ(result.throughput.steady_tokens_per_s, 0);
  EXPECT_EQ(result.step_ns.median_ns, 0);
}

TEST(RunResultOfALog, AnOkWithoutATimeIsNone) {
  const RunResult result = Read("loss 3\n");
  EXPECT_EQ(result.status, RunStatus::kCrashed);
  EXPECT_THAT(result.message, HasSubstr("says 'ok' without a figure that an ok needs"));
  EXPECT_THAT(result.message, HasSubstr("not found: step_time, mean_step_time, tokens_per_s"));
  EXPECT_THAT(result.hint, HasSubstr("ridgeline trainers try mine --log LOG"));
}

TEST(RunResultOfALog, MoreTimesThanStepsAreNoResult) {
  const RunResult result = Read(Steps(0, 5) + Steps(0, 5));
  EXPECT_EQ(result.status, RunStatus::kCrashed);
  EXPECT_EQ(result.message, "its log has 12 step times, and the point has 6 steps, warm-up included");
}

TEST(RunResultOfALog, RatesThatContradictTheTimesAreNoResult) {
  const RunResult result = Read(Steps(0, 5) + "all 20000 tok\n");
  EXPECT_EQ(result.status, RunStatus::kCrashed);
  EXPECT_THAT(result.message, HasSubstr("its figures cannot all be true: tokens_per_s is 20"));
}

TEST(RunResultOfALog, AnotherModelUnderTheSameNameIsNoResult) {
  const int64_t right = CountParameters(Spec());
  EXPECT_EQ(Read(Steps(0, 5) + fmt::format("parameters {}\n", right)).parameters, right);
  const RunResult other = Read(Steps(0, 5) + fmt::format("parameters {}\n", right * 11 / 10));
  EXPECT_EQ(other.status, RunStatus::kInvalid);
  EXPECT_THAT(other.message, HasSubstr("it trained another model: it says 11.1M parameters, and llama-10m has 10.1M"));
  const double tflops = ModelFlops(Spec()).model_causal / 0.0965 * 1e-12;
  EXPECT_EQ(Read(Steps(0, 5) + fmt::format("tflops {:.6f}\n", tflops)).status, RunStatus::kOk);
  const RunResult faster = Read(Steps(0, 5) + fmt::format("tflops {:.6f}\n", 3 * tflops));
  EXPECT_EQ(faster.status, RunStatus::kInvalid);
  EXPECT_THAT(faster.message, HasSubstr("FLOPs a step on each rank"));
}

TEST(RunResultOfALog, AnEndIsItsLine) {
  const RunResult oom = Read("step 0: 5 ms\ntorch.OutOfMemoryError: CUDA out of memory. Tried\n", 1);
  EXPECT_EQ(oom.status, RunStatus::kOomDevice);
  EXPECT_EQ(oom.message, "torch.OutOfMemoryError: CUDA out of memory. Tried");
  EXPECT_EQ(oom.evidence.at("log_line"), "2");
  EXPECT_EQ(Read(Steps(0, 3) + "loss nan\n").status, RunStatus::kDiverged);
  EXPECT_EQ(Read("nothing\n", 7).status, RunStatus::kCrashed);
}

}  // namespace
}  // namespace ridgeline
