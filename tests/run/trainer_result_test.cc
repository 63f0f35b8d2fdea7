// What another's trainer may write, and what is made of it. docs/trainer-contract.md has the rules.
#include "run/trainer_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "run/result.h"
#include "run/step_figures.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

RunSpec Spec() {
  RunSpec spec;
  spec.batch_size = 4;
  spec.seq_length = 250;
  spec.warmup_steps = 2;
  spec.steps = 3;
  return spec;
}

RunResult Parse(const std::string& members) {
  return ParseTrainerResult(R"({"version": 1, "status": "ok")" + members + "}", Spec(), "its result");
}

std::string Refusal(const std::string& members) {
  try {
    Parse(members);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    return e.message();
  }
  return "accepted";
}

TEST(TrainerResult, AMisspeltKeyIsRefusedWithTheNearest) {
  EXPECT_EQ(Refusal(R"(, "througput": {})"),
            "its result: not a RunResult: unknown key 'througput', did you mean 'throughput'?");
  EXPECT_EQ(Refusal(R"(, "step_ns": {"medain": 5})"),
            "its result: not a RunResult: unknown key 'step_ns.medain', did you mean 'step_ns.median'?");
  EXPECT_EQ(Refusal(R"(, "memory": {"device_peak_byte": 5})"),
            "its result: not a RunResult: unknown key 'memory.device_peak_byte', did you mean "
            "'memory.device_peak_bytes'?");
  EXPECT_EQ(Refusal(R"(, "ranks": [{"hots": "a"}])"),
            "its result: not a RunResult: unknown key 'ranks.hots', did you mean 'ranks.host'?");
  EXPECT_EQ(Refusal(R"(, "qqqqqqqq": 1)"), "its result: not a RunResult: unknown key 'qqqqqqqq'");
}

TEST(TrainerResult, ARefusalSaysWhereTheContractLies) {
  const std::filesystem::path home = std::filesystem::path(testing::TempDir()) / "contract_home";
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
  EXPECT_EQ(hint(R"(, "loss": 5)"), "what a trainer writes is said in docs/trainer-contract.md");
  ::setenv("RIDGELINE_HOME", home.c_str(), 1);
  const std::string page = (home / "docs/trainer-contract.md").string();
  EXPECT_EQ(hint(R"(, "througput": {})"),
            "what is your own goes into evidence or environment; the keys are listed in " + page);
  for (const char* wrong : {R"(, "loss": 5)", R"(, "provenance": "guessed")", R"(, "ranks": {})", R"(, "version": 9)",
                            R"(, "memory": {"rss_peak_bytes": -5})", ",,"}) {
    EXPECT_EQ(hint(wrong), "what a trainer writes is said in " + page) << wrong;
  }
  ::unsetenv("RIDGELINE_HOME");
  std::filesystem::remove_all(home);
}

TEST(TrainerResult, WhatIsTheTrainersOwnHasItsPlaces) {
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
  const std::string text = DumpJson(EncodeResult(all));
  EXPECT_EQ(ParseTrainerResult(text, Spec(), "x").ranks.size(), 1U);
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
  // A trainer that says itself how it ended knows better.
  EXPECT_EQ(ParseTrainerResult(R"({"version": 1, "status": "preempted", "loss": [NaN]})", Spec(), "x").reason,
            InfrastructureReason::kPreempted);
}

TEST(TrainerResult, OnlyNumbersAreReadSo) {
  EXPECT_EQ(Parse(R"(, "device": "NaN \"Infinity\" NaN")").device, "NaN \"Infinity\" NaN");
  EXPECT_EQ(Refusal(R"(, "throughput": {"steady_tokens_per_s": NaN})"),
            "its result: not a RunResult: throughput.steady_tokens_per_s is null, which is no number");
  EXPECT_THAT(Refusal(R"(, "loss": [nan])"), HasSubstr("its result: not JSON"));
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

TEST(TrainerResult, WhatTheTrainerSaysStands) {
  const RunResult r = Parse(R"(, "tokens_per_step": 10, "step_ns": {"all": [9, 9, 1, 3, 2], "median": 7},
                             "throughput": {"cold_tokens_per_s": 5})");
  EXPECT_EQ(r.tokens_per_step, 10);
  EXPECT_EQ(r.step_ns.median_ns, 7);
  EXPECT_EQ(r.step_ns.p95_ns, 3);
  EXPECT_EQ(r.throughput.cold_tokens_per_s, 5);
  EXPECT_DOUBLE_EQ(r.throughput.steady_tokens_per_s, 10 / 7e-9);
}

TEST(TrainerResult, WithoutTimesNothingIsDerived) {
  const RunResult r = Parse(R"(, "step_ns": {"median": 7})");
  EXPECT_EQ(r.tokens_per_step, 0);
  EXPECT_EQ(r.throughput.steady_tokens_per_s, 0);
}

TEST(TrainerResult, StepsThatAreAllWarmUpHaveAColdFigureAlone) {
  const RunResult r = Parse(R"(, "step_ns": {"all": [4, 6]})");
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

}  // namespace
}  // namespace ridgeline
