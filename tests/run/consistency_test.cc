// The figures that contradict each other or their point. docs/trainer-contract.md lists them in the same order.
#include "run/consistency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "run/step_figures.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Change = std::function<void(RunResult&)>;

// Five steps of 1000 tokens, two of them warm-up, on two ranks.
RunSpec Spec() {
  RunSpec spec;
  spec.batch_size = 2;
  spec.seq_length = 250;
  spec.ranks = 2;
  spec.warmup_steps = 2;
  spec.steps = 3;
  return spec;
}

RunResult Right() {
  RunResult r;
  r.status = RunStatus::kOk;
  r.tokens_per_step = 1000;
  r.step_ns.all_ns = {9'000'000, 5'000'000, 1'000'000, 3'000'000, 2'000'000};
  FillStepFigures({1'000'000, 3'000'000, 2'000'000}, r);
  r.loss = {3, 2.5, 2.25, 2, 1.75};
  r.grad_norm = {1, 1, 1, 1, 1};
  r.skipped_steps = 5;
  r.memory = {600, {{"parameters", 100}, {"activations", 500}}, 1000};
  r.ranks = {{"node1", 600, 1000}, {"node2", 600, 900}};
  r.flops = {1e9, 1.5e9, 1.25e9};
  r.gpu.sm_clock_mhz = 1800;
  r.gpu.sm_clock_min_mhz = 1500;
  r.gpu.throttled_share = 0.25;
  r.gpu.clock_limits = {{"hw_slowdown", 5}, {"gpu_idle", 2}};
  r.started_unix_ns = 100;
  r.ended_unix_ns = 200;
  return r;
}

std::string Of(const Change& change, const RunSpec& spec = Spec()) {
  RunResult result = Right();
  change(result);
  return Contradiction(spec, result);
}

TEST(Consistency, AcceptsConsistentFigures) {
  EXPECT_EQ(Of([](RunResult&) {}), "");
  EXPECT_EQ(MissingOfOk(Spec(), Right()), "");
}

TEST(Consistency, ARateNeedsNoMoreFlopsThanTheGpuHas) {
  RunSpec spec = Spec();
  spec.device = "cuda";
  spec.gpu = "h100";
  // 1e9 FLOPs in 1000 tokens, on each GPU: 1978 TFLOP/s are 1.978e9 tokens/s of both.
  const auto rate = [&](double tokens_per_s, double Throughput::*figure) {
    return Of(
        [&](RunResult& r) {
          r.step_ns = {};
          r.throughput = {};
          r.throughput.*figure = tokens_per_s;
        },
        spec);
  };
  EXPECT_EQ(rate(1.9e9, &Throughput::steady_tokens_per_s), "");
  EXPECT_THAT(
      rate(2e9, &Throughput::steady_tokens_per_s),
      AllOf(HasSubstr("steady_tokens_per_s is 2e+09"), HasSubstr("2000 TFLOP/s"), HasSubstr("h100 does is 1978")));
  EXPECT_THAT(rate(2e9, &Throughput::cold_tokens_per_s), HasSubstr("cold_tokens_per_s"));
  spec.gpu = "l40s";
  EXPECT_EQ(rate(2e9, &Throughput::steady_tokens_per_s), "") << "no data sheet says what it does";
  spec.device = "cpu";
  spec.gpu = "none";
  EXPECT_EQ(rate(2e9, &Throughput::steady_tokens_per_s), "");
}

TEST(Consistency, EachContradictionIsASentenceThatNamesBoth) {
  const std::vector<std::pair<Change, std::string>> cases = {
      {[](RunResult& r) { r.step_ns.all_ns.pop_back(); },
       "step_ns.all has 4 numbers, and the point has 5 steps, warm-up included"},
      {[](RunResult& r) { r.step_ns.all_ns.push_back(2'000'000); }, "step_ns.all has 6 numbers"},
      {[](RunResult& r) { r.loss.push_back(1); }, "loss has 6 numbers, and the point has 5 steps"},
      {[](RunResult& r) { r.grad_norm.push_back(1); }, "grad_norm has 6 numbers"},
      {[](RunResult& r) { r.skipped_steps = 6; }, "skipped_steps is 6, and the point has 5 steps"},
      {[](RunResult& r) { r.step_ns.p95_ns = 1'999'999; },
       "step_ns.p95 is 1999999, and step_ns.median 2000000: more than half of the steps took longer"},
      {[](RunResult& r) { r.step_ns.median_ns = r.step_ns.p95_ns = 9'000'001; },
       "step_ns.median is 9000001, and the steps took 1000000 to 9000000"},
      {[](RunResult& r) { r.step_ns.p95_ns = 9'000'001; }, "step_ns.p95 is 9000001"},
      {[](RunResult& r) { r.step_ns.median_ns = 999'999; }, "step_ns.median is 999999"},
      {[](RunResult& r) { r.ended_unix_ns = 99; }, "ended_unix_ns is 99, before started_unix_ns, 100"},
      {[](RunResult& r) { r.throughput.steady_tokens_per_s = 0.5; },  // tokens a millisecond
       "throughput.steady_tokens_per_s is 0.5, and 1000 tokens in 0.002 s are 500000"},
      {[](RunResult& r) { r.throughput.steady_tokens_per_s *= 2; }, "throughput.steady_tokens_per_s is 1e+06"},
      {[](RunResult& r) { r.tokens_per_step = 500; }, "throughput.steady_tokens_per_s is 500000, and 500 tokens in"},
      {[](RunResult& r) { r.throughput.cold_tokens_per_s = 100'000; },
       "throughput.cold_tokens_per_s is 100000, and 5000 tokens in 0.02 s are 250000"},
      {[](RunResult& r) { r.memory.by_category["logits"] = 1; },
       "memory.by_category does not sum to memory.planned_peak_bytes, 600"},
      {[](RunResult& r) { r.memory.by_category["activations"] = 499; }, "memory.by_category does not sum"},
      {[](RunResult& r) {
         r.memory.by_category = {{"a", INT64_MAX}, {"b", INT64_MAX}, {"c", 602}};
       },
       "memory.by_category does not sum"},
      {[](RunResult& r) {
         r.ranks.push_back({"node3", 600, 900});
       },
       "ranks has 3 entries, and the point has 2"},
      {[](RunResult& r) { r.ranks[1].rss_peak_bytes = 1001; },
       "memory.rss_peak_bytes is 1000, and a rank on node2 had 1001"},
      {[](RunResult& r) {
         r.memory.rss_peak_bytes = 99;
         r.ranks.clear();
       },
       "memory.rss_peak_bytes is 99, and the parameters alone are planned with 100"},
      {[](RunResult& r) { r.flops.model_causal = 2e9; },
       "flops.model_causal is 2e+09, and flops.model_non_causal, which is more work, 1.5e+09"},
      {[](RunResult& r) { r.gpu.sm_clock_min_mhz = 1801; },
       "gpu.sm_clock_min_mhz is 1801, and gpu.sm_clock_mhz, their mean, 1800"},
      {[](RunResult& r) { r.gpu.throttled_share.reset(); }, "gpu.clock_limits is given without gpu.throttled_share"},
      {[](RunResult& r) { r.gpu.throttled_share = 0; },
       "gpu.throttled_share is 0, and by gpu.clock_limits its clocks were held down by a slowdown of the hardware"},
  };
  for (const auto& [change, says] : cases) EXPECT_THAT(Of(change), HasSubstr(says));
}

TEST(Consistency, AMissingFigureContradictsNothing) {
  const std::vector<Change> cases = {
      [](RunResult& r) { r.step_ns.all_ns.clear(); },
      [](RunResult& r) {
        r.step_ns = {{}, 0, 5, 0};
      },
      [](RunResult& r) { r.tokens_per_step = 0; },
      [](RunResult& r) { r.throughput = {}; },
      [](RunResult& r) { r.loss.clear(), r.grad_norm.clear(); },
      [](RunResult& r) {
        r.loss = {3, 1.75};
      },  // not one per step
      [](RunResult& r) { r.memory = {}; },
      [](RunResult& r) { r.memory.planned_peak_bytes = 0; },
      [](RunResult& r) { r.memory.by_category.clear(); },
      [](RunResult& r) {
        r.ranks = {{"node1", 0, 0}};
      },
      [](RunResult& r) { r.flops.model_non_causal = 0; },
      [](RunResult& r) { r.gpu.sm_clock_mhz.reset(); },
      [](RunResult& r) { r.gpu.clock_limits.clear(); },
      [](RunResult& r) {
        r.gpu.throttled_share = 0;
        r.gpu.clock_limits = {{"hw_slowdown", 0}, {"sw_power_cap", 5}, {"gpu_idle", 2}};
      },
      [](RunResult& r) { r.gpu = {}; },
      [](RunResult& r) { r.started_unix_ns = 0; },
      [](RunResult& r) { r.ended_unix_ns = 0; },
      [](RunResult& r) { r = RunResult(); },
  };
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(Of(cases[i]), "") << i;
}

TEST(Consistency, MeasuredStepsAreThoseOfThePoint) {
  EXPECT_THAT(Of([](RunResult& r) { r.measured_steps = 4; }),
              HasSubstr("measured_steps is 4, and the point has 3 of them"));
  EXPECT_THAT(Of([](RunResult& r) { r.memory.device_peak_kind = "a guess"; }),
              HasSubstr("memory.device_peak_kind is 'a guess', and is one of allocated, in use and NVML"));
}

// Steps are measured until measure.seconds have passed.
TEST(Consistency, OnGpusMoreStepsMayBeMeasured) {
  RunSpec spec = Spec();
  spec.device = "cuda";
  RunResult result = Right();
  result.measured_steps = 40;
  result.loss.push_back(1);
  EXPECT_EQ(Contradiction(spec, result), "");
  result.step_ns.all_ns.pop_back();
  EXPECT_THAT(Contradiction(spec, result), HasSubstr("step_ns.all has 4 numbers"));
}

TEST(Consistency, FewerMeasuredStepsThanAskedForAreSaid) {
  RunSpec spec = Spec();
  spec.min_steps = 3;
  RunResult result = Right();
  EXPECT_EQ(TooFewSteps(spec, result), "");
  result.measured_steps = 2;
  EXPECT_EQ(TooFewSteps(spec, result),
            "its steady figures are of 2 measured steps, and measure: {min_steps: 3} asks for as many");
  result.measured_steps = 0;
  EXPECT_EQ(TooFewSteps(spec, result), "") << "nobody says of how many";
  result.step_ns = {};
  result.throughput.steady_tokens_per_s = 0;
  EXPECT_NE(TooFewSteps(spec, result), "") << "of none: it has a cold figure alone";
  spec.min_steps = 1;
  EXPECT_EQ(TooFewSteps(spec, result), "");
}

TEST(Consistency, AThroughputMayBeRounded) {
  EXPECT_EQ(Of([](RunResult& r) { r.throughput.steady_tokens_per_s *= 1.04; }), "");
  EXPECT_EQ(Of([](RunResult& r) { r.throughput.cold_tokens_per_s *= 0.96; }), "");
  EXPECT_NE(Of([](RunResult& r) { r.throughput.steady_tokens_per_s *= 1.06; }), "");
}

TEST(Consistency, ARunThatFailedMayLackOtherFigures) {
  EXPECT_EQ(Of([](RunResult& r) {
              r.status = RunStatus::kDiverged;
              r.step_ns.all_ns.resize(3);
              r.throughput.cold_tokens_per_s = 0;
            }),
            "");
  EXPECT_EQ(Of([](RunResult& r) {  // planned, and killed before its parameters existed
              r.status = RunStatus::kOomHost;
              r.memory.rss_peak_bytes = 99;
              r.ranks.clear();
            }),
            "");
}

// A trainer that knows only its own process's steps.
TEST(Consistency, AContinuedRunMayLeaveOutTheStepsBefore) {
  const auto continued = [](const std::string& after, size_t steps) {
    return Of([&](RunResult& r) {
      r.evidence["resumed_from_step"] = after;
      r.step_ns.all_ns.assign(steps, 2'000'000);
      r.throughput.cold_tokens_per_s = 500'000;
      r.step_ns.p95_ns = 2'000'000;
    });
  };
  EXPECT_EQ(continued("2", 3), "");
  EXPECT_EQ(continued("2", 5), "");
  EXPECT_NE(continued("2", 2), "");
  EXPECT_NE(continued("2", 6), "");
  EXPECT_NE(continued("many", 3), "");
  EXPECT_NE(continued("-9", 3), "");
}

// An accelerator's memory is not part of a process's resident set.
TEST(Consistency, ParametersMayLieOnAnAccelerator) {
  EXPECT_EQ(Of([](RunResult& r) {
              r.memory.rss_peak_bytes = 99;
              r.memory.device_peak_bytes = 600;
              r.ranks.clear();
            }),
            "");
}

TEST(Consistency, AnOkNeedsToSayHowFastItWas) {
  const auto missing = [](const Change& change) {
    RunResult r;
    r.status = RunStatus::kOk;
    r.loss = {2};
    r.tokens_per_step = 1000;
    change(r);
    return MissingOfOk(Spec(), r);
  };
  EXPECT_EQ(missing([](RunResult&) {}),
            "step_ns.all, step_ns.median, throughput.steady_tokens_per_s or throughput.cold_tokens_per_s");
  EXPECT_NE(missing([](RunResult& r) { r.step_ns.all_ns.assign(5, 0); }), "") << "no step takes no time";
  EXPECT_EQ(missing([](RunResult& r) { r.step_ns.median_ns = 1; }), "");
  EXPECT_EQ(missing([](RunResult& r) { r.throughput.cold_tokens_per_s = 1; }), "") << "of who knows no more";
  EXPECT_EQ(missing([](RunResult& r) { r.throughput.steady_tokens_per_s = 1; }), "");
}

TEST(Consistency, AnOkOfAPlanNeedsThePlan) {
  RunSpec spec = Spec();
  spec.device = "meta";
  RunResult r;
  r.status = RunStatus::kOk;
  EXPECT_EQ(MissingOfOk(spec, r), "memory.planned_peak_bytes");
  r.memory.planned_peak_bytes = 1;
  EXPECT_EQ(MissingOfOk(spec, r), "");
}

}  // namespace
}  // namespace ridgeline
