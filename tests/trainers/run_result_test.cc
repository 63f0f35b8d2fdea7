// A log that was read, as a result: its figures, their contradictions, and how it ended.
#include "trainers/run_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "run/presets.h"
#include "run/spec.h"

namespace ridgeline::trainers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Trainer& TestedTrainer() {
  static const Trainer trainer = ParseTrainer(R"(name: mine
about: one line
version: "1.0"
tested: log
result: patterns
metrics:
  - {name: step_time, regex: 'step (?P<step>\d+): (?P<value>\S+) ms', unit: ms, take: series}
  - {name: step_time, regex: 'plain (\S+) ms', unit: ms, take: series}
  - {name: step_time, regex: 'took (\S+) s$', unit: s, take: series}
  - {name: step_time, regex: 'middle (\S+) ms', unit: ms, take: median}
  - {name: step_time, regex: 'newest (\S+) ms', unit: ms}
  - {name: step_time, regex: 'longest (\S+) ms', unit: ms, take: max}
  - {name: mean_step_time, regex: 'mean (\S+) ms', unit: ms}
  - {name: tokens_per_s, regex: 'rate (\S+)', unit: tokens/s/GPU, take: series}
  - {name: tokens_per_s, regex: 'all (\S+) tok', unit: tokens/s}
  - {name: loss, regex: 'loss (\S+)', take: series}
  - {name: device_peak, regex: 'device (\S+) GiB', unit: GiB, take: max}
  - {name: device_used, regex: 'card (\S+) GiB', unit: GiB, take: max}
  - {name: host_peak, regex: 'host (\S+) MB', unit: MB, take: max}
  - {name: parameters, regex: '^parameters (\S+)'}
  - {name: trainable_parameters, regex: '^trainable (\S+)'}
  - {name: tflops_per_gpu, regex: 'tflops (\S+)', unit: TFLOP/s/GPU}
  - {name: version, regex: 'mine (\S+)'}
)",
                                              "mine.yaml");
  return trainer;
}

// 1000 tokens a step, two warm-up steps and four measured ones.
RunSpec TestedSpec() {
  std::vector<Problem> problems;
  return BuildSpec({{"model", "llama-10m"}, {"batch_size", 10}, {"seq_length", 50}, {"ranks", 2}, {"steps", 4}},
                   problems);
}

RunResult ResultFrom(const std::string& log, int exit_code = 0, const RunSpec& spec = TestedSpec(), int64_t life_ns = 0,
                     const Trainer& trainer = TestedTrainer()) {
  ReadingOptions options = OptionsFor(trainer, spec);
  options.exit_code = exit_code;
  const Reading reading = ReadLog(
      trainer, [&](const auto& feed) { feed(log); }, options);
  return ResultOf(trainer, reading, spec, life_ns);
}

// A run that went well, whose process lived for `life_s` seconds.
RunResult ReadOfLife(const std::string& log, double life_s, const RunSpec& spec = TestedSpec()) {
  return ResultFrom(log, 0, spec, static_cast<int64_t>(life_s * 1e9));
}

RunSpec TenSteps() {
  RunSpec spec = TestedSpec();
  spec.steps = 8;
  return spec;
}

std::string Repeated(const std::string& line, int times) {
  std::string log;
  for (int i = 0; i < times; ++i) log += line;
  return log;
}

std::string Steps(int first, int last, int every = 1) {
  std::string log;
  for (int step = first; step <= last; step += every)
    log += fmt::format("step {}: {} ms, loss {}\n", step, 100 - step, 9 - step);
  return log;
}

TEST(RunResultOfALog, AValueAStepIsTheSeries) {
  const RunResult result = ResultFrom("mine 1.4\n" + Steps(0, 5) + "device 2 GiB\nhost 3 MB\n");
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
  EXPECT_EQ(result.environment.at("definition"), DefinitionWords(TestedTrainer()));
  EXPECT_EQ(result.parameters, 0) << "what it does not say is not known";
  EXPECT_EQ(result.flops.model_causal, ModelFlops(TestedSpec()).model_causal);
}

TEST(RunResultOfALog, IfOnlySomeStepsAreLoggedTheWarmUpIsLeftOutByNumber) {
  RunSpec spec = TestedSpec();
  spec.steps = 8;  // ten steps in all
  const RunResult even =
      ResultFrom(Steps(2, 10, 2), 0, spec);  // two steps a line: step 2's line has the two of warm-up
  EXPECT_EQ(even.status, RunStatus::kOk) << even.message;
  EXPECT_EQ(even.step_ns.median_ns, 93'000'000) << "of 96, 94, 92 and 90";
  EXPECT_THAT(even.step_ns.all_ns, IsEmpty());
  EXPECT_EQ(even.evidence.at("step_times_found"), "5");
  const RunResult plain = ResultFrom("plain 50 ms\nplain 10 ms\nplain 12 ms\n", 0, spec);
  EXPECT_EQ(plain.step_ns.median_ns, 11'000'000) << "without numbers the first is the warm-up's share";
}

TEST(RunResultOfALog, ARateOfEachRankIsOfAllOfThem) {
  const RunResult result = ResultFrom("rate 1\nrate 500\nrate 500\n");
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_DOUBLE_EQ(result.throughput.steady_tokens_per_s, 1000);
  EXPECT_EQ(result.step_ns.median_ns, 0);
}

TEST(RunResultOfALog, RanksThatShareAModelShareItsTokensAndItsWork) {
  RunSpec spec = TestedSpec();
  spec.ranks = 8;
  spec.tensor_parallel = 2;
  spec.pipeline_parallel = 2;
  const RunResult split = ResultFrom("rate 4\nrate 5\nrate 5\nrate 5\n", 0, spec);
  EXPECT_EQ(split.tokens_per_step, 1000) << "of two data-parallel ranks";
  EXPECT_DOUBLE_EQ(split.throughput.steady_tokens_per_s, 40) << "a rate of each GPU is of all eight";
  EXPECT_DOUBLE_EQ(split.flops.model_causal * 4, ModelFlops(TestedSpec()).model_causal);
}

// Embedding and head share their weights, but lie on the first stage and on the last.
TEST(RunResultOfALog, APipelineMayCountSharedWeightsTwice) {
  RunSpec spec = TestedSpec();
  ASSERT_TRUE(spec.tied_head);
  const int64_t once = CountParameters(spec);
  const std::string twice = fmt::format("parameters {}\n", once + spec.vocab * spec.hidden);
  EXPECT_EQ(ResultFrom(Steps(0, 5) + twice, 0, spec).status, RunStatus::kInvalid);
  spec.ranks = 4;
  spec.pipeline_parallel = 2;
  EXPECT_EQ(ResultFrom(Steps(0, 5) + twice, 0, spec).status, RunStatus::kOk);
  EXPECT_EQ(ResultFrom(Steps(0, 5) + fmt::format("parameters {}\n", once), 0, spec).status, RunStatus::kOk);
}

TEST(RunResultOfALog, AMeanOfAllStepsSaysNothingOfTheSteadyOnes) {
  const RunResult result = ResultFrom("mean 500 ms\n");
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_DOUBLE_EQ(result.throughput.cold_tokens_per_s, 2000);
  EXPECT_EQ(result.throughput.steady_tokens_per_s, 0);
  EXPECT_EQ(result.step_ns.median_ns, 0);
}

TEST(RunResultOfALog, AnOkWithoutATimeIsInvalid) {
  const RunResult result = ResultFrom("loss 3\n");
  EXPECT_EQ(result.status, RunStatus::kInvalid);
  EXPECT_THAT(result.message, HasSubstr("its log does not say how fast it was"));
  EXPECT_THAT(result.message, HasSubstr("not found: step_time, mean_step_time, tokens_per_s"));
  EXPECT_THAT(result.hint, HasSubstr("ridgeline trainers try mine --log LOG"));
}

TEST(RunResultOfALog, AnOkWithoutATimeIsTheErrorOfItsLog) {
  const RunResult result = ResultFrom("loss 3\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.\n");
  EXPECT_EQ(result.status, RunStatus::kOomDevice) << "as of `train | tee log`, whose exit code is tee's";
  EXPECT_THAT(result.message, HasSubstr("1 GiB"));
}

TEST(RunResultOfALog, MoreTimesThanStepsAreNoResult) {
  const RunResult result = ResultFrom(Steps(0, 11));
  EXPECT_EQ(result.status, RunStatus::kInvalid);
  EXPECT_EQ(result.message, "its log has 12 step times, and the point has 6 steps, warm-up included");
}

TEST(RunResultOfALog, RatesThatContradictTheTimesAreNoResult) {
  const RunResult result = ResultFrom(Steps(0, 5) + "all 20000 tok\n");
  EXPECT_EQ(result.status, RunStatus::kInvalid);
  EXPECT_THAT(result.message, HasSubstr("its figures cannot all be true: tokens_per_s is 20"));
}

TEST(RunResultOfALog, AnotherModelUnderTheSameNameIsNoResult) {
  const int64_t right = CountParameters(TestedSpec());
  EXPECT_EQ(ResultFrom(Steps(0, 5) + fmt::format("parameters {}\n", right)).parameters, right);
  const RunResult other = ResultFrom(Steps(0, 5) + fmt::format("parameters {}\n", right * 11 / 10));
  EXPECT_EQ(other.status, RunStatus::kInvalid);
  EXPECT_THAT(other.message, HasSubstr("it trained another model: it says 11.1M parameters, and llama-10m has 10.1M"));
  const double tflops = ModelFlops(TestedSpec()).model_causal / 0.0965 * 1e-12;
  EXPECT_EQ(ResultFrom(Steps(0, 5) + fmt::format("tflops {:.6f}\n", tflops)).status, RunStatus::kOk);
  const RunResult faster = ResultFrom(Steps(0, 5) + fmt::format("tflops {:.6f}\n", 3 * tflops));
  EXPECT_EQ(faster.status, RunStatus::kInvalid);
  EXPECT_THAT(faster.message, HasSubstr("FLOPs a step on each rank"));
}

TEST(RunResultOfALog, StepsThatTakeLongerThanTheProcessLivedAreInvalid) {
  const std::string six = Repeated("plain 60000 ms\n", 6);
  EXPECT_EQ(ReadOfLife(six, 800).status, RunStatus::kOk);
  const RunResult late = ReadOfLife(six, 12);
  EXPECT_EQ(late.status, RunStatus::kInvalid);
  EXPECT_EQ(late.message,
            "its times cannot be true: its 6 step times come to 6 min 00 s, and the process lived for 12 s");
  EXPECT_THAT(late.hint, HasSubstr("unit"));
  EXPECT_EQ(late.step_ns.median_ns, 0) << "no figure of it is shown";
  EXPECT_EQ(late.throughput.steady_tokens_per_s, 0);
  for (const char* log : {"mean 60000 ms\n", "rate 9\nrate 9\nrate 9\nrate 9\nrate 9\nrate 9\n", "all 17 tok\n"}) {
    EXPECT_EQ(ReadOfLife(log, 800).status, RunStatus::kOk) << log << ReadOfLife(log, 800).message;
    EXPECT_EQ(ReadOfLife(log, 12).status, RunStatus::kInvalid) << log;
  }
  EXPECT_EQ(ResultFrom(six, 1, TestedSpec(), 1).status, RunStatus::kCrashed) << "its own end says more";
}

TEST(RunResultOfALog, AValueOfEveryFewStepsIsHeldToTheClockForAllOfThem) {
  std::string log;
  for (int step = 2; step <= 10; step += 2) log += fmt::format("step {}: 2000 ms\n", step);
  EXPECT_EQ(ReadOfLife(log, 20, TenSteps()).status, RunStatus::kOk);
  EXPECT_EQ(ReadOfLife(log, 15, TenSteps()).status, RunStatus::kInvalid) << "five values are of ten steps";
}

TEST(RunResultOfALog, AnHonestRunIsNotHeldToWhatWasRounded) {
  RunSpec spec = TestedSpec();
  spec.steps = 58;
  EXPECT_EQ(ReadOfLife(Repeated("took 1 s\n", 60), 36, spec).status, RunStatus::kOk) << "of 0.6 s each";
  // Two ranks each print one line for half of the steps.
  EXPECT_EQ(ReadOfLife(Repeated("took 1.01 s\ntook 1.02 s\n", 30), 32, spec).status, RunStatus::kOk);
  spec.ranks = 1;
  EXPECT_EQ(ReadOfLife(Repeated("took 1.01 s\ntook 1.02 s\n", 30), 32, spec).status, RunStatus::kInvalid);
  // The run continues from a checkpoint and does the last two steps.
  RunSpec resumed = TenSteps();
  resumed.checkpoint_dir = "ckpt";
  EXPECT_EQ(ReadOfLife("mean 5000 ms\n", 12, resumed).status, RunStatus::kOk);
  EXPECT_EQ(ReadOfLife("mean 5000 ms\nstep 9: 5000 ms\nstep 10: 5000 ms\n", 12, resumed).measured_steps, 0)
      << "its first steps are as cold as any";
}

TEST(RunResultOfALog, TimesThatAreAHundredthOfTheLifeAskForTheUnit) {
  const RunResult doubted = ReadOfLife(Steps(0, 5), 100);
  EXPECT_EQ(doubted.status, RunStatus::kOk);
  EXPECT_EQ(doubted.evidence.at("unit_question"),
            "its 6 step times come to 585 ms, and the process lived for 1 min 40 s: is the unit right?");
  EXPECT_FALSE(ReadOfLife(Steps(0, 5), 50).evidence.contains("unit_question"));
}

TEST(RunResultOfALog, OneRateOfTheWholeRunIsNotSteady) {
  const RunResult result = ResultFrom("rate 58\n");
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.throughput.steady_tokens_per_s, 0);
  EXPECT_DOUBLE_EQ(result.throughput.cold_tokens_per_s, 116);
  EXPECT_EQ(result.measured_steps, 0);
  const RunResult series = ResultFrom(Repeated("rate 500\n", 6));
  EXPECT_EQ(series.measured_steps, 4);
  EXPECT_EQ(series.throughput.cold_tokens_per_s, 0) << "rates alone say nothing of it";
}

TEST(RunResultOfALog, ARunThatDiedInItsFirstStepHasNoSteadyFigure) {
  for (const char* log : {"step 1: 5000 ms\n", "step 0: 5000 ms\n", "plain 5000 ms\n", "rate 5\n"}) {
    const RunResult result = ResultFrom(log, 1);
    EXPECT_EQ(result.status, RunStatus::kCrashed);
    EXPECT_EQ(result.step_ns.median_ns, 0) << log;
    EXPECT_EQ(result.throughput.steady_tokens_per_s, 0) << log;
  }
  EXPECT_EQ(ResultFrom(Steps(1, 3), 1).step_ns.median_ns, 97'000'000) << "one step behind the warm-up";
}

TEST(RunResultOfALog, FewerStepsThanAskedForAreCounted) {
  RunSpec spec = TestedSpec();
  spec.steps = 103;
  const RunResult few = ResultFrom(Steps(1, 6), 0, spec);
  EXPECT_EQ(few.status, RunStatus::kOk) << few.message;
  EXPECT_EQ(few.measured_steps, 4);
  spec.min_steps = 5;
  const RunResult refused = ResultFrom(Steps(1, 6), 0, spec);
  EXPECT_EQ(refused.status, RunStatus::kInvalid);
  EXPECT_EQ(refused.message,
            "its steady figures are of 4 measured steps, and measure: {min_steps: 5} asks for as many");
  EXPECT_EQ(refused.measured_steps, 4);
  EXPECT_EQ(ResultFrom(Steps(1, 7), 0, spec).status, RunStatus::kOk);
  EXPECT_EQ(ResultFrom("mean 500 ms\n", 0, spec).status, RunStatus::kInvalid) << "that is of no measured step";
  EXPECT_EQ(ResultFrom(Steps(2, 10, 2), 0, TenSteps()).measured_steps, 8) << "four values are of two steps each";
  EXPECT_EQ(ResultFrom(Steps(0, 5)).measured_steps, 4);
}

TEST(RunResultOfALog, AMeanThatMayHoldTheWarmUpIsNotSteady) {
  RunSpec spec = TestedSpec();
  spec.warmup_steps = 1;
  spec.steps = 29;
  const RunResult second = ResultFrom("step 1: 9000 ms\nstep 10: 900 ms\nstep 20: 50 ms\nstep 30: 52 ms\n", 0, spec);
  EXPECT_EQ(second.step_ns.median_ns, 51'000'000) << "the second mean may have the first step in it";
  EXPECT_EQ(second.measured_steps, 20);
  const RunResult from_zero = ResultFrom("step 9: 900 ms\nstep 19: 50 ms\nstep 29: 52 ms\n", 0, spec);
  EXPECT_EQ(from_zero.step_ns.median_ns, 51'000'000);
  const RunResult one = ResultFrom("step 30: 300 ms\n", 0, spec);
  EXPECT_EQ(one.status, RunStatus::kOk) << one.message;
  EXPECT_EQ(one.step_ns.median_ns, 0) << "it may be a mean of all steps";
  EXPECT_DOUBLE_EQ(one.throughput.cold_tokens_per_s, 1000 / 0.3);
}

TEST(RunResultOfALog, AMedianLeavesTheWarmUpOutToo) {
  EXPECT_EQ(
      ResultFrom("middle 900 ms\nmiddle 800 ms\n" + Repeated("middle 10 ms\nmiddle 12 ms\n", 2)).step_ns.median_ns,
      11'000'000);
  const RunResult newest = ResultFrom(Repeated("newest 900 ms\n", 5) + "newest 12 ms\n");
  EXPECT_EQ(newest.step_ns.median_ns, 12'000'000);
  EXPECT_EQ(newest.measured_steps, 1);
  const RunResult longest = ResultFrom(Repeated("longest 900 ms\n", 6));
  EXPECT_EQ(longest.status, RunStatus::kInvalid) << "the longest step is no measure of all";
}

TEST(RunResultOfALog, ATimeOfZeroIsNone) {
  const RunResult result =
      ResultFrom("step 1: 50 ms\nstep 2: 40 ms\nstep 3: 0 ms\nstep 4: 30 ms\nstep 5: 32 ms\nstep 6: 0 ms\n");
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.step_ns.median_ns, 31'000'000);
  EXPECT_EQ(result.measured_steps, 2);
  EXPECT_EQ(ResultFrom(Repeated("plain 0 ms\n", 6)).status, RunStatus::kInvalid);
}

TEST(RunResultOfALog, ARateOfEachRankIsHeldToTheStepsTime) {
  const RunResult right = ResultFrom(Steps(0, 5) + Repeated("rate 5181\n", 6));
  EXPECT_EQ(right.status, RunStatus::kOk) << right.message;
  const RunResult wrong = ResultFrom(Steps(0, 5) + Repeated("rate 10362\n", 6));
  EXPECT_EQ(wrong.status, RunStatus::kInvalid);
  EXPECT_THAT(wrong.message,
              HasSubstr("tokens_per_s is 10.4K on each of 2 ranks, but 1000 tokens in a step of 96.5 ms"));
}

TEST(RunResultOfALog, ADevicesMemorySaysWhatItCounts) {
  const RunResult both = ResultFrom(Steps(0, 5) + "card 40 GiB\ndevice 2 GiB\n");
  EXPECT_EQ(both.memory.device_peak_bytes, int64_t{2} << 30);
  EXPECT_EQ(both.memory.device_peak_kind, "allocated");
  const RunResult card = ResultFrom(Steps(0, 5) + "card 40 GiB\n");
  EXPECT_EQ(card.memory.device_peak_bytes, int64_t{40} << 30);
  EXPECT_EQ(card.memory.device_peak_kind, "in use");
  EXPECT_EQ(ResultFrom(Steps(0, 5)).memory.device_peak_kind, "");
}

TEST(RunResultOfALog, KeepsThePrintedEfficiency) {
  RunSpec spec = TestedSpec();
  const double tflops = ModelFlops(spec).model_causal / 0.0965 * 1e-12;
  const std::string log = Steps(0, 5) + fmt::format("tflops {0:.6f}\n", tflops);
  EXPECT_NEAR(*ResultFrom(log).printed.tflops_per_gpu, tflops, 1e-6);
  EXPECT_FALSE(ResultFrom(Steps(0, 5)).printed.tflops_per_gpu.has_value());
}

// Four ranks print every tenth step without its number. Their first lines cover ten cold steps, for each rank.
TEST(RunResultOfALog, TheFirstLinesOfRanksWithoutNamesAreCold) {
  RunSpec spec = TestedSpec();
  spec.ranks = 4;
  spec.warmup_steps = 2;
  spec.steps = 18;
  const RunResult result = ResultFrom(
      "plain 90 ms\nplain 91 ms\nplain 92 ms\nplain 93 ms\nplain 40 ms\nplain 41 ms\nplain 42 ms\nplain 43 ms\n", 0,
      spec);
  EXPECT_EQ(result.step_ns.median_ns, 41'500'000);
  EXPECT_EQ(result.measured_steps, 1) << "and not its lines";
  EXPECT_THAT(result.evidence.at("steps_at_least"), HasSubstr("any of the 4 ranks may have printed each"));
  const RunResult one =
      ResultFrom("plain 90 ms\n" + Repeated("plain 40 ms\nplain 41 ms\n", 4) + "plain 40 ms\n", 0, spec);
  EXPECT_EQ(one.measured_steps, 9) << "one writer's, of every second step";
}

TEST(RunResultOfALog, LinesOfRanksWithoutNamesAreNoSteps) {
  RunSpec spec = TestedSpec();
  spec.ranks = 4;
  std::string all;
  for (int step = 0; step < 6; ++step) {
    for (int rank = 0; rank < 4; ++rank) all += fmt::format("plain {} ms\n", (step < 2 ? 900 : 50) + rank);
  }
  const RunResult each = ResultFrom(all, 0, spec);
  EXPECT_EQ(each.status, RunStatus::kOk) << each.message;
  EXPECT_EQ(each.measured_steps, 4);
  EXPECT_EQ(each.step_ns.median_ns, 51'500'000);
  EXPECT_FALSE(each.evidence.contains("steps_at_least"));
  EXPECT_EQ(ResultFrom(all, 0, spec, 1'800'000'000).status, RunStatus::kOk) << "the ranks' steps go on at once";
  EXPECT_EQ(ResultFrom(all, 0, spec, 500'000'000).status, RunStatus::kInvalid);
  spec.grad_accumulation = 4;
  EXPECT_THAT(ResultFrom(all, 0, spec).message, HasSubstr("its log has 24 step times")) << "or of micro-steps";
  spec.grad_accumulation = 1;
  spec.steps = 98;
  const RunResult few = ResultFrom(all, 0, spec);
  EXPECT_LE(few.measured_steps, 6) << "each rank's six of a hundred steps";
  EXPECT_THAT(few.evidence.at("steps_at_least"), HasSubstr("covers an unknown number of steps"));
  const RunResult rates = ResultFrom(Repeated("rate 1\nrate 2\nrate 3\n", 8), 0, spec);
  EXPECT_EQ(rates.measured_steps, 6);
  // For ranks that name themselves, the steps are known.
  std::string named;
  for (int line = 0; line < 24; ++line) named += fmt::format("[rank{}]: plain {} ms\n", line % 4, 50 + line);
  const RunResult known = ResultFrom(named, 0, spec);
  EXPECT_FALSE(known.evidence.contains("steps_at_least"));
  EXPECT_EQ(known.measured_steps, 5) << "of six lines that are spread over a hundred steps";
}

// DeepSpeed of early 2022 prints such a mean: since the start, except for two steps.
TEST(RunResultOfALog, ARunningMeanIsNotSteady) {
  const RunResult result = ResultFrom("all 1000 tok\nall 1500 tok\nall 1800 tok\n");
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.throughput.steady_tokens_per_s, 0);
  EXPECT_DOUBLE_EQ(result.throughput.cold_tokens_per_s, 1800);
  EXPECT_EQ(result.measured_steps, 0);
  // With a first step of ten seconds: 0.5 tokens/ms at the end, and 10 by the steps.
  const std::string steps = "step 0: 10000 ms\n" + Steps(1, 5);
  const RunResult beside = ResultFrom(steps + "all 90 tok\nall 573 tok\n");
  EXPECT_EQ(beside.status, RunStatus::kOk) << beside.message;
  EXPECT_EQ(beside.step_ns.median_ns, 96'500'000);
  EXPECT_EQ(ResultFrom(steps + "all 90 tok\nall 20000 tok\n").status, RunStatus::kInvalid)
      << "no mean is faster than each step";
  EXPECT_EQ(ReadOfLife("all 10 tok\nall 17 tok\n", 12).status, RunStatus::kInvalid)
      << "six steps at the last of them take six minutes";
  const Trainer each = ParseTrainer(
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\nmetrics:\n"
      "  - {name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, take: series}\n"
      "  - {name: tokens_per_s, regex: 'each (\\S+)', unit: tokens/s/GPU}\n",
      "mine.yaml");
  const auto status = [&](const std::string& log) { return ResultFrom(log, 0, TestedSpec(), 0, each).status; };
  EXPECT_EQ(status(steps + "each 45\neach 286\n"), RunStatus::kOk);
  EXPECT_EQ(status(steps + "each 45\neach 9000\n"), RunStatus::kInvalid);
}

TEST(RunResultOfALog, DropsFiguresOfColdStepsAlone) {
  const Trainer trainer = ParseTrainer(
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\nmetrics:\n"
      "  - {name: mfu, regex: 'step (?P<step>\\d+) mfu (?P<value>\\S+)%', unit: '%', take: series}\n"
      "  - {name: data_time, regex: 'data (\\S+)', unit: ms, take: series}\n"
      "  - {name: startup, regex: 'startup (\\S+)', unit: s}\n",
      "mine.yaml");
  const RunResult result =
      ResultFrom("startup 7\nstep 1 mfu 2%\ndata 9\nRuntimeError: boom\n", 1, TestedSpec(), 0, trainer);
  EXPECT_FALSE(result.printed.mfu.has_value());
  EXPECT_FALSE(result.metrics.contains("data_time"));
  EXPECT_EQ(result.metrics.at("startup").value, 7) << "which is no step's";
}

TEST(RunResultOfALog, RatesAreHeldToRoundedTimesAsFarAsTheySay) {
  const Trainer trainer = ParseTrainer(
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\nmetrics:\n"
      "  - {name: step_time, regex: 'step (?P<step>\\d+): (?P<value>[\\d.]+) s', unit: s, take: series}\n"
      "  - {name: tokens_per_s, regex: 'rate (\\S+) each', unit: tokens/s/GPU, take: series}\n"
      "  - {name: tokens_per_s, regex: 'rate (\\S+) all', unit: tokens/s, take: series}\n",
      "mine.yaml");
  const auto status = [&](const std::string& rest) {
    std::string log;
    for (int step = 1; step <= 6; ++step) log += fmt::format("step {}: {}\n", step, rest);
    return ResultFrom(log, 0, TestedSpec(), 0, trainer).status;
  };
  EXPECT_EQ(status("0.03 s, rate 28818 all"), RunStatus::kOk) << "34.7 ms";
  EXPECT_EQ(status("0.03 s, rate 14409 each"), RunStatus::kOk);
  EXPECT_EQ(status("0.03 s, rate 14409 all"), RunStatus::kInvalid);
  EXPECT_EQ(status("0.03 s, rate 28818 each"), RunStatus::kInvalid);
  EXPECT_EQ(status("0.0347 s, rate 25000 all"), RunStatus::kInvalid);
}

// Figures of small models have one digit.
TEST(RunResultOfALog, ARoundedSizeIsTheSameModel) {
  const RunSpec spec = TestedSpec();
  const double ms = ModelFlops(spec).model_causal / 0.06e12 * 1e3;
  const std::string log = Repeated(fmt::format("plain {:.1f} ms\n", ms), 6);
  EXPECT_EQ(ResultFrom(log + "tflops 0.1\n").status, RunStatus::kOk);
  EXPECT_EQ(ResultFrom(log + "tflops 0.10\n").status, RunStatus::kOk) << "nobody knows how many digits it has";
  EXPECT_EQ(ResultFrom(log + "tflops 0.3\n").status, RunStatus::kInvalid);
  const Trainer trainer = ParseTrainer(
      "name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\nmetrics:\n"
      "  - {name: step_time, regex: 'plain (\\S+) ms', unit: ms, take: series}\n"
      "  - {name: parameters, regex: 'has (\\S+)B', unit: B}\n",
      "mine.yaml");
  for (const auto& [has, status] : {std::pair("has 0.01B", RunStatus::kOk), std::pair("has 0.010B", RunStatus::kOk),
                                    std::pair("has 0.02B", RunStatus::kInvalid)}) {
    EXPECT_EQ(ResultFrom(log + has + "\n", 0, spec, 0, trainer).status, status) << has;
  }
}

TEST(RunResultOfALog, TrainedParametersMayBeAPartOfTheModel) {
  const int64_t all = CountParameters(TestedSpec());
  const RunResult part = ResultFrom(Steps(0, 5) + fmt::format("trainable {}\n", all / 100));
  EXPECT_EQ(part.status, RunStatus::kOk) << part.message;
  EXPECT_EQ(part.metrics.at("trainable_parameters").value, static_cast<double>(all / 100));
  EXPECT_EQ(ResultFrom(Steps(0, 5) + fmt::format("trainable {}\n", 2 * all)).status, RunStatus::kInvalid);
}

TEST(RunResultOfALog, ADefinitionMaySayThatAModelIsNotCompared) {
  const std::string log = Steps(0, 5) + "parameters 5\ntflops 900\n";
  EXPECT_EQ(ResultFrom(log).status, RunStatus::kInvalid);
  EXPECT_THAT(ResultFrom(log).hint, HasSubstr("checks: {parameters: no"));
  const auto with = [](const std::string& checks) { return ParseTrainer(TestedTrainer().text + checks, "mine.yaml"); };
  EXPECT_EQ(ResultFrom(log, 0, TestedSpec(), 0, with("checks: {parameters: no, flops: no}\n")).status, RunStatus::kOk);
  EXPECT_EQ(ResultFrom(log, 0, TestedSpec(), 0, with("checks: {parameters: false}\n")).status, RunStatus::kInvalid)
      << "its FLOPs";
}

TEST(RunResultOfALog, AFigureThatMeansSomethingElseForAPointIsLeftOut) {
  const Trainer trainer = ParseTrainer(
      "name: mine\nabout: x\nversion: '1'\ntested: source\nresult: patterns\ncommand: [x]\nmetrics:\n"
      "  - {name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, take: series}\n"
      "  - {name: parameters, regex: '^parameters (\\S+)', if: '{{tensor_parallel}} == 1 and {{family}} != gpt'}\n"
      "  - {name: waited, regex: '^waited (\\S+)', unit: s, if: '{{tensor_parallel}} != 1'}\n",
      "mine.yaml");
  RunSpec spec = TestedSpec();
  const std::string log = Steps(0, 5) + "parameters 5\nwaited 3\n";
  const RunResult whole = ResultFrom(log, 0, spec, 0, trainer);
  EXPECT_EQ(whole.status, RunStatus::kInvalid);
  EXPECT_EQ(whole.parameters, 5);
  EXPECT_TRUE(whole.metrics.empty());
  spec.tensor_parallel = 2;
  const RunResult part = ResultFrom(log, 0, spec, 0, trainer);
  EXPECT_EQ(part.status, RunStatus::kOk) << part.message;
  EXPECT_EQ(part.parameters, 0);
  EXPECT_EQ(part.metrics.at("waited").value, 3);
  EXPECT_THAT(part.evidence.at("log_notes"),
              HasSubstr("parameters is left out: its definition reads it only if tensor_parallel == 1"));
}

TEST(RunResultOfALog, AnEndIsItsLine) {
  const RunResult oom = ResultFrom("step 0: 5 ms\ntorch.OutOfMemoryError: CUDA out of memory. Tried\n", 1);
  EXPECT_EQ(oom.status, RunStatus::kOomDevice);
  EXPECT_EQ(oom.message, "torch.OutOfMemoryError: CUDA out of memory. Tried");
  EXPECT_EQ(oom.evidence.at("log_line"), "2");
  EXPECT_EQ(ResultFrom(Steps(0, 3) + "loss nan\n").status, RunStatus::kDiverged);
  EXPECT_EQ(ResultFrom("nothing\n", 7).status, RunStatus::kCrashed);
}

TEST(RunResultOfALog, NothingIsComparedWithWhatNobodyKnows) {
  std::vector<Problem> problems;
  Json values = {{"model", "my-model"}, {"trainer", "mine"}, {"batch_size", 10},
                 {"seq_length", 50},    {"ranks", 2},        {"steps", 4}};
  const RunSpec named = BuildSpec(values, problems);
  EXPECT_THAT(problems, IsEmpty());
  const RunResult result = ResultFrom(Steps(0, 5) + "parameters 123456789\ntflops 500\n", 0, named);
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.parameters, 123456789);
  EXPECT_EQ(result.flops.model_causal, 0);
  values["parameters"] = 5'000'000;
  const RunSpec said = BuildSpec(values, problems);
  EXPECT_EQ(ResultFrom(Steps(0, 5) + "parameters 5000001\n", 0, said).status, RunStatus::kOk);
  EXPECT_THAT(ResultFrom(Steps(0, 5) + "parameters 8000000\n", 0, said).message,
              HasSubstr("it says 8.00M parameters, and my-model has 5.00M"));
  EXPECT_EQ(ResultFrom(Steps(0, 5), 0, said).flops.model_causal, 6.0 * 5'000'000 * 10 * 50);
}

}  // namespace
}  // namespace ridgeline::trainers
