// What another trainer may write, and how it is read. docs/trainer-contract.md has the rules.
#include "run/trainer_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "ridgeline/sealed_json.h"
#include "run/result.h"
#include "run/step_figures.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

RunSpec FiveSteps() {
  RunSpec spec;
  spec.batch_size = 4;
  spec.seq_length = 250;
  spec.warmup_steps = 2;
  spec.steps = 3;
  return spec;
}

// The result of an ok that gives its speed in one of the possible ways.
RunResult Parse(const std::string& members) {
  const std::string times = members.find("step_ns") == std::string::npos ? R"(, "step_ns": {"median": 5})" : "";
  return ParseTrainerResult(R"({"version": 1, "status": "ok")" + times + members + "}", FiveSteps(), "its result");
}

std::string RefusalOfMembers(const std::string& members) {
  try {
    Parse(members);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.message();
  }
  return "accepted";
}

TEST(TrainerResult, AMisspeltKeyIsRefusedWithTheNearest) {
  EXPECT_EQ(RefusalOfMembers(R"(, "througput": {})"),
            "its result: not a RunResult: unknown key 'througput', did you mean 'throughput'?");
  EXPECT_EQ(RefusalOfMembers(R"(, "step_ns": {"medain": 5})"),
            "its result: not a RunResult: unknown key 'step_ns.medain', did you mean 'step_ns.median'?");
  EXPECT_EQ(RefusalOfMembers(R"(, "memory": {"device_peak_byte": 5})"),
            "its result: not a RunResult: unknown key 'memory.device_peak_byte', did you mean "
            "'memory.device_peak_bytes'?");
  EXPECT_EQ(RefusalOfMembers(R"(, "ranks": [{"hots": "a"}])"),
            "its result: not a RunResult: unknown key 'ranks.hots', did you mean 'ranks.host'?");
  EXPECT_EQ(RefusalOfMembers(R"(, "qqqqqqqq": 1)"), "its result: not a RunResult: unknown key 'qqqqqqqq'");
}

TEST(TrainerResult, ARefusalSaysWhereTheContractLies) {
  const std::filesystem::path home = std::filesystem::path(::testing::TempDir()) / "contract_home";
  MakeDirs(home / "docs");
  WriteFile(home / "docs/trainer-contract.md", "# A trainer of your own\n");
  const auto hint = [](const std::string& members) {
    try {
      Parse(members);
    } catch (const Error& e) {
      return e.hint();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(hint(R"(, "loss": 5)"), "the trainer contract is in docs/trainer-contract.md");
  ::setenv("RIDGELINE_HOME", home.c_str(), 1);
  const std::string page = (home / "docs/trainer-contract.md").string();
  EXPECT_EQ(hint(R"(, "througput": {})"),
            "put keys of your own into evidence or environment; the known keys are listed in " + page);
  for (const char* wrong :
       {R"(, "loss": 5)", R"(, "provenance": "guessed")", R"(, "ranks": {})", R"(, "version": 9)",
        R"(, "memory": {"rss_peak_bytes": -5})", ",,", R"(, "step_ns": {"all": [1]})", R"(, "step_ns": {})"}) {
    EXPECT_EQ(hint(wrong), "the trainer contract is in " + page) << wrong;
  }
  ::unsetenv("RIDGELINE_HOME");
  std::filesystem::remove_all(home);
}

TEST(TrainerResult, KeepsATrainersOwnEvidenceEnvironmentAndCategories) {
  const RunResult r = Parse(
      R"(, "evidence": {"mine": "x"}, "environment": {"torch": "2.9"}, "memory": {"by_category": {"kv cache": 7}})");
  EXPECT_EQ(r.evidence.at("mine"), "x");
  EXPECT_EQ(r.environment.at("torch"), "2.9");
  EXPECT_EQ(r.memory.by_category.at("kv cache"), 7);
}

TEST(TrainerResult, EveryKeyThatIsEncodedIsKnown) {
  RunResult all;
  all.status = RunStatus::kOk;
  all.ranks = {{"node1", 1, 2}};
  all.step_ns.median_ns = 5;
  for (const std::string& text : {DumpJson(EncodeResult(all)), SealedText(EncodeResult(all))}) {
    EXPECT_EQ(ParseTrainerResult(text, FiveSteps(), "x").ranks.size(), 1U);
  }
}

TEST(TrainerResult, ALossThatIsNotFiniteHasDivergedInWhateverWordItComes) {
  for (const char* loss : {"[2.5, NaN]", "[2.5, Infinity]", "[2.5, -Infinity, 1]", "[2.5, null]"}) {
    const RunResult r = Parse(std::string(R"(, "loss": )") + loss + R"(, "step_ns": {"all": [9, 9, 5]})");
    EXPECT_EQ(r.status, RunStatus::kDiverged) << loss;
    EXPECT_THAT(r.message, HasSubstr("the loss of step 2 of ")) << loss;
    EXPECT_EQ(r.evidence.at("step"), "2");
    EXPECT_EQ(r.throughput.steady_tokens_per_s, 0) << "a run that diverged has no throughput";
  }
  EXPECT_EQ(Parse(R"(, "grad_norm": [NaN, 1.5])").status, RunStatus::kOk) << "loss scaling may skip a step";
  // A trainer's own statement of its end has precedence.
  EXPECT_EQ(ParseTrainerResult(R"({"version": 1, "status": "preempted", "loss": [NaN]})", FiveSteps(), "x").reason,
            InfrastructureReason::kPreempted);
}

TEST(TrainerResult, OnlyNumbersAreReadSo) {
  EXPECT_EQ(Parse(R"(, "device": "NaN \"Infinity\" NaN")").device, "NaN \"Infinity\" NaN");
  EXPECT_EQ(RefusalOfMembers(R"(, "throughput": {"steady_tokens_per_s": NaN})"),
            "its result: not a RunResult: throughput.steady_tokens_per_s is null, which is not a number");
  EXPECT_THAT(RefusalOfMembers(R"(, "loss": [nan])"), HasSubstr("its result: not JSON"));
}

TEST(TrainerResult, FiguresOfStepsAreDerivedFromTheirTimes) {
  const RunResult r = Parse(R"(, "step_ns": {"all": [9000000, 5000000, 1000000, 3000000, 2000000]})");
  EXPECT_EQ(r.tokens_per_step, 1000);
  EXPECT_EQ(r.step_ns.median_ns, 2'000'000);
  EXPECT_EQ(r.step_ns.p95_ns, 3'000'000);
  EXPECT_NEAR(r.step_ns.cv, 0.408248, 1e-6);  // deviation of 1, 2 and 3 over their mean
  EXPECT_DOUBLE_EQ(r.throughput.steady_tokens_per_s, 500'000);
  EXPECT_DOUBLE_EQ(r.throughput.cold_tokens_per_s, 250'000);
}

TEST(TrainerResult, KeepsTheTrainersFigures) {
  const RunResult r = Parse(R"(, "tokens_per_step": 10, "step_ns": {"all": [9, 9, 1, 4, 2], "median": 3},
                             "throughput": {"cold_tokens_per_s": 2e9})");
  EXPECT_EQ(r.tokens_per_step, 10);
  EXPECT_EQ(r.step_ns.median_ns, 3);
  EXPECT_EQ(r.step_ns.p95_ns, 4);
  EXPECT_EQ(r.throughput.cold_tokens_per_s, 2e9);
  EXPECT_DOUBLE_EQ(r.throughput.steady_tokens_per_s, 10 / 3e-9);
}

TEST(TrainerResult, RefusesImpossibleFigures) {
  EXPECT_EQ(RefusalOfMembers(R"(, "step_ns": {"all": [9, 9, 1, 4]})"),
            "its result cannot be true: step_ns.all has 4 numbers, and the point has 5 steps, warm-up included");
  // It also contradicts what follows from its own figures.
  EXPECT_THAT(RefusalOfMembers(R"(, "step_ns": {"all": [9, 9, 1, 3, 2], "median": 7})"),
              HasSubstr("cannot be true: step_ns.p95 is 3, and step_ns.median 7"));
  EXPECT_THAT(RefusalOfMembers(R"(, "step_ns": {"all": [9, 9, 1, 3, 2]}, "throughput": {"steady_tokens_per_s": 5})"),
              HasSubstr("throughput.steady_tokens_per_s is 5, and 1000 tokens in 2e-09 s are 5e+11"));
}

TEST(TrainerResult, AnOkThatLacksItsFiguresIsRefused) {
  EXPECT_EQ(RefusalOfMembers(R"(, "step_ns": {}, "loss": [2.5, 2.25])"),
            "its result says 'ok' without a figure that an ok needs: step_ns.all, step_ns.median, "
            "throughput.steady_tokens_per_s or throughput.cold_tokens_per_s");
  EXPECT_THAT(RefusalOfMembers(R"(, "step_ns": {"all": [0, 0, 0, 0, 0]})"), HasSubstr("that an ok needs"));
  EXPECT_EQ(Parse(R"(, "step_ns": {}, "throughput": {"steady_tokens_per_s": 5})").status, RunStatus::kOk);
  // Any other end needs no figures.
  EXPECT_EQ(ParseTrainerResult(R"({"version": 1, "status": "invalid"})", FiveSteps(), "x").status, RunStatus::kInvalid);
}

TEST(TrainerResult, AChecksumIsCheckedWhereThereIsOne) {
  RunResult result;
  result.status = RunStatus::kOk;
  result.step_ns.median_ns = 5;
  std::string text = SealedText(EncodeResult(result));
  text.replace(text.find("\"median\":5"), 10, "\"median\":6");
  try {
    ParseTrainerResult(text, FiveSteps(), "its result");
    FAIL() << "taken";
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("its result was changed since it was written"));
  }
}

TEST(TrainerResult, ItsOwnWordsAreCounted) {
  const auto with = [](size_t count) {
    std::string texts;
    for (size_t i = 0; i < count; ++i) texts += (i == 0 ? "" : ", ") + ("\"" + std::to_string(i) + "\": \"x\"");
    return texts;
  };
  for (const char* key : {"evidence", "environment"}) {
    EXPECT_THAT(RefusalOfMembers(fmt::format(R"(, "{}": {{{}}})", key, with(257))),
                HasSubstr(fmt::format("its result has 257 pieces of {}, and may have 256", key)));
    EXPECT_EQ(Parse(fmt::format(R"(, "{}": {{{}}})", key, with(256))).status, RunStatus::kOk);
  }
  EXPECT_LT(RefusalOfMembers(", \"" + std::string(1'000'000, 'k') + "\": 1").size(), 300U)
      << "nor is a key quoted at length";
}

TEST(TrainerResult, ATrainerCannotSayWhoUsedItsCores) {
  EXPECT_EQ(Parse(R"(, "cores": {"busy_share": 0.5, "throttles": 7})").cores.throttles, 0);
}

TEST(TrainerResult, HowItsGpuFaredTheTrainerSays) {
  EXPECT_EQ(Parse(R"(, "gpu": {"power_w": 650.5, "others": 0})").gpu.power_w, 650.5);
  EXPECT_THAT(RefusalOfMembers(R"(, "gpu": {"power": 650.5})"),
              HasSubstr("unknown key 'gpu.power', did you mean 'gpu.power_w'?"));
  EXPECT_THAT(RefusalOfMembers(R"(, "gpu": {"throttled_share": 1.5})"), HasSubstr("gpu.throttled_share is 1.5"));
}

TEST(TrainerResult, ItsFileHasALengthThatGrowsWithItsSteps) {
  const TempDir dir;
  const auto refusal = [&](const RunSpec& spec) -> std::string {
    try {
      return ReadTrainerResult(dir / "result.json", spec, "its result") ? "taken" : "missing";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
      EXPECT_THAT(e.hint(), HasSubstr("trainer-contract.md"));
      return e.message();
    }
  };
  EXPECT_EQ(refusal(FiveSteps()), "missing");
  const std::string text = R"({"version": 1, "status": "crashed", "message": "because"})";
  WriteFile(dir / "result.json", text);
  EXPECT_EQ(refusal(FiveSteps()), "taken");
  WriteFile(dir / "result.json", text + std::string((8 << 20) + 1 - text.size(), ' '));
  EXPECT_EQ(refusal(FiveSteps()), "its result has 8388609 bytes, and may have 8388608");
  RunSpec long_run = FiveSteps();
  long_run.steps = 1'000'000;  // the series of their times, losses and norms
  EXPECT_EQ(refusal(long_run), "taken");
  long_run.steps = 1'000'000'000;
  long_run.repeats = 1000;
  std::filesystem::resize_file(dir / "result.json", size_t{200} << 20);
  EXPECT_THAT(refusal(long_run), HasSubstr("its result has 209715200 bytes"));
}

TEST(TrainerResult, WithoutTimesNothingIsDerived) {
  const RunResult r = Parse(R"(, "step_ns": {"median": 7})");
  EXPECT_EQ(r.tokens_per_step, 0);
  EXPECT_EQ(r.throughput.steady_tokens_per_s, 0);
}

TEST(StepFigures, StepsThatAreAllWarmUpHaveAColdFigureAlone) {
  RunResult r;
  r.step_ns.all_ns = {4, 6};
  DeriveStepFigures(FiveSteps(), r);
  EXPECT_EQ(r.step_ns.median_ns, 0);
  EXPECT_EQ(r.throughput.steady_tokens_per_s, 0);
  EXPECT_DOUBLE_EQ(r.throughput.cold_tokens_per_s, 2000 / 10e-9);
}

TEST(StepFigures, AnEvenNumberOfStepsHasTheMeanOfTheMiddleTwo) {
  RunResult r;
  FillStepFigures({1, 4, 2, 9}, r);
  EXPECT_EQ(r.step_ns.median_ns, 3);
  EXPECT_EQ(r.step_ns.p95_ns, 9);
}

TEST(StepFigures, TheLargestNumbersDoNotOverflow) {
  RunResult r;
  FillStepFigures({9'000'000'000'000'000'000, 9'000'000'000'000'000'000}, r);
  EXPECT_EQ(r.step_ns.median_ns, 9'000'000'000'000'000'000);
  RunSpec spec = FiveSteps();
  spec.batch_size = spec.seq_length = spec.grad_accumulation = spec.ranks = 1 << 20;
  r.step_ns.all_ns = {4, 6, 8};
  DeriveStepFigures(spec, r);
  EXPECT_EQ(r.tokens_per_step, INT64_MAX);
}

}  // namespace
}  // namespace ridgeline
