// Other trainers' frameworks; and AWS's figures of NVIDIA's fsdp.py on eight B200: the 1B stack in MXFP8 at sequence
// 8192, five iterations.
#include "predict/framework.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "predict/step_model.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline::predict {
namespace {
using ::testing::HasSubstr;

constexpr double kGpus = 8;

RunSpec AwsSpec(const std::string& model, int64_t batch, const std::string& checkpointing) {
  const std::string fields = fmt::format(
      "model: {}, precision: mxfp8, seq_length: 8192, ranks: 8, shard: full, warmup_steps: 0, steps: 5, batch_size: "
      "{}, "
      "checkpointing: {}",
      model, batch, checkpointing);
  return sweep::Expand(sweep::ParseSweep("name: aws\ndefaults: {" + fields + "}", "s.yaml"))[0].spec;
}

const std::vector<std::filesystem::path> kFolders = {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "frameworks"};

const Framework& TeFsdp() {
  static const Framework framework = FindFramework("te-fsdp", kFolders);
  return framework;
}

RunSpec SpecWith(const std::string& fields) {
  return sweep::Expand(sweep::ParseSweep("name: s\ndefaults: {" + fields + "}", "s.yaml"))[0].spec;
}

Device AwsDevice() { return FindDevice("p6-b200", {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "devices"}); }

StepForecast AwsForecast(const RunSpec& spec) {
  const Device device = AwsDevice();
  const auto [priced, as] = AsPriced(TeFsdp(), spec);
  return Forecast(CostsOf(priced, device), device, as);
}

TEST(TeFsdp, HasThePeaksThatAwsPublished) {
  const auto peak_gb = [](int64_t batch, const char* checkpointing) {
    return static_cast<double>(PeakBytes(TeFsdp(), AwsSpec("stack-1b", batch, checkpointing))) / 1e9;
  };
  EXPECT_NEAR(peak_gb(1, "none") / 15.5, 1, 0.08);
  EXPECT_NEAR(peak_gb(1, "full") / 2.3, 1, 0.08);
  EXPECT_NEAR(peak_gb(16, "full") / 22.8, 1, 0.08);
}

// For 14B to 64B AWS published that peaks were 87 to 171 GB, and that most points without checkpointing ran out of
// memory, but not the batches. Of the batches published for 1B, and 4 between them, the largest that fit are in the
// range. A batch of 8 of 64B would also fit, and is above the range.
TEST(TeFsdp, LargeModelsAtTheLargestBatchAreInTheRangeThatAwsPublished) {
  const double usable_gb = AwsDevice().At("memory.size") / 1e9;
  int out_of_memory = 0;
  for (const char* model : {"stack-14b", "stack-32b", "stack-64b"}) {
    const auto peak_gb = [&](int64_t batch, const char* checkpointing) {
      return static_cast<double>(PeakBytes(TeFsdp(), AwsSpec(model, batch, checkpointing))) / 1e9;
    };
    const int64_t batch = peak_gb(16, "full") <= usable_gb ? 16 : 4;
    EXPECT_GE(std::round(peak_gb(batch, "full")), 87) << model << ", batch " << batch;
    EXPECT_LE(std::round(peak_gb(batch, "full")), 171) << model << ", batch " << batch;
    if (peak_gb(1, "none") > usable_gb) ++out_of_memory;
    if (model == std::string("stack-64b")) {
      EXPECT_NEAR(peak_gb(8, "full"), 184, 1) << "which docs/prediction-accuracy.md owns";
    }
  }
  EXPECT_EQ(out_of_memory, 2);
}

TEST(TeFsdp, HasTheThroughputsThatAwsPublished) {
  const RunSpec one = AwsSpec("stack-1b", 1, "none");
  const RunSpec again = AwsSpec("stack-1b", 1, "full");
  const RunSpec sixteen = AwsSpec("stack-1b", 16, "full");
  const StepForecast of_one = AwsForecast(one);
  const StepForecast of_again = AwsForecast(again);
  const StepForecast of_sixteen = AwsForecast(sixteen);
  const double one_tokens_per_s = of_one.cold_tokens_per_s(one) / kGpus;
  const double again_tokens_per_s = of_again.cold_tokens_per_s(again) / kGpus;
  const double sixteen_tokens_per_s = of_sixteen.cold_tokens_per_s(sixteen) / kGpus;
  EXPECT_NEAR(one_tokens_per_s / 6000, 1, 0.10);
  EXPECT_NEAR(sixteen_tokens_per_s / 51000, 1, 0.10);
  EXPECT_LT(again_tokens_per_s, one_tokens_per_s);
  EXPECT_GT(again_tokens_per_s, 0.95 * one_tokens_per_s) << "slightly less";
  EXPECT_NEAR(sixteen_tokens_per_s / one_tokens_per_s, 8.5, 0.6) << "what is published as 8 x";
  EXPECT_LT(of_sixteen.steady_tokens_per_s(sixteen), of_one.steady_tokens_per_s(one))
      << "in steady state there is nothing of it: what is computed again costs more than a larger batch gains";
}

TEST(TeFsdp, RecomputationOfLargeModelsCostsTenToThirtyPercent) {
  const double none_ns = AwsForecast(AwsSpec("stack-14b", 4, "none")).step_ns;
  const double full_ns = AwsForecast(AwsSpec("stack-14b", 4, "full")).step_ns;
  EXPECT_GT(full_ns / none_ns, 1.10);
  EXPECT_LT(full_ns / none_ns, 1.32);
}

TEST(Frameworks, RefusesUnknownKeys) {
  try {
    FindFramework("te-fspd", kFolders);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_EQ(e.message(), "there is no framework 'te-fspd', did you mean 'te-fsdp'?");
  }
  EXPECT_TRUE(FindFramework("ridgeline", kFolders).plans);
  EXPECT_EQ(NotEstimated(TeFsdp(), SpecWith("model: llama-1b, ranks: 8, shard: full")),
            "te-fsdp is known with family: stack, not llama");
  const Framework torchtitan = FindFramework("torchtitan", kFolders);
  EXPECT_EQ(NotEstimated(torchtitan, SpecWith("model: llama-1b, ranks: 8, shard: full")), "");
  EXPECT_EQ(NotEstimated(torchtitan, SpecWith("model: llama-1b, ranks: 8, shard: full, checkpointing: full/2")),
            "what torchtitan computes again with checkpointing: full/2 is not known");
  RunSpec parallel = SpecWith("model: llama-1b, ranks: 8, shard: full");
  parallel.tensor_parallel = 2;
  EXPECT_EQ(NotEstimated(torchtitan, parallel), "tensor_parallel: 2 is not predicted yet");
  parallel.tensor_parallel = 1;
  parallel.experts = 8;
  EXPECT_THAT(NotEstimated(torchtitan, parallel), HasSubstr("cannot be priced yet"));
}

TEST(Frameworks, StandForDefinitionsOrForAllPoints) {
  const Frameworks by_trainer(kFolders);
  ASSERT_NE(by_trainer.Of("megatron_lm"), nullptr);
  EXPECT_EQ(by_trainer.Of("megatron_lm")->name, "megatron");
  EXPECT_EQ(by_trainer.Of("megatron_lm@main")->name, "megatron") << "of any release";
  EXPECT_EQ(by_trainer.Of("ridgeline")->name, "ridgeline");
  EXPECT_EQ(by_trainer.Of("my_own"), nullptr);
  const Frameworks one(kFolders, "llm-foundry");
  EXPECT_EQ(one.Of("ridgeline")->name, "llm-foundry");
}

// The text tells an assumed figure from one that published rows back.
TEST(Frameworks, SayWhetherPublishedRowsBackThem) {
  const Framework torchtitan = FindFramework("torchtitan", kFolders);
  EXPECT_EQ(torchtitan.Basis("h100"), "estimated as torchtitan: time ±4.5 % on 17 published rows, memory assumed");
  EXPECT_EQ(torchtitan.Basis("b200"), "estimated as torchtitan: time assumed, memory assumed");
  const StepSize size = {.tokens = 8192, .ranks = 8, .parameters = 8e9};
  EXPECT_GT(torchtitan.Spread("b200", size), torchtitan.Spread("h100", size));
  EXPECT_EQ(torchtitan.Spread("h100", {.tokens = 4096, .ranks = 64, .parameters = 70e9}),
            torchtitan.Spread("h100", size));
  EXPECT_GT(torchtitan.Spread("h100", {.tokens = 131072, .ranks = 8, .parameters = 8e9}),
            torchtitan.Spread("h100", size))
      << "no row has such sequences";
  EXPECT_EQ(FindFramework("llm-foundry", kFolders).Basis("a100"),
            "estimated as llm-foundry: time assumed, memory assumed");
  EXPECT_EQ(Framework{}.Basis("h100"), "");
}

// 16 bytes a parameter over 8 ranks, and over 128: published peaks of one model on both differ by at most that.
TEST(Frameworks, ShardsTakeWhatTheirStateDoes) {
  const Framework torchtitan = FindFramework("torchtitan", kFolders);
  const auto peak = [&](int ranks, const char* accumulation) {
    return PeakBytes(torchtitan, SpecWith(fmt::format("model: llama-8b, seq_length: 8192, batch_size: 2, ranks: {}, "
                                                      "shard: full, checkpointing: selective, grad_accumulation: {}",
                                                      ranks, accumulation)));
  };
  constexpr double kParameters = 8030261248;
  const double difference = kParameters * (1.0 / 8 - 1.0 / 128);
  EXPECT_NEAR(static_cast<double>(peak(8, "1") - peak(128, "1")) / difference, 12, 0.01) << "no gradients yet";
  EXPECT_NEAR(static_cast<double>(peak(8, "2") - peak(128, "2")) / difference, 16, 0.01);
}

// Each group of 8 holds what 8 ranks would, and each rank's share of the gradients is also reduced among groups.
TEST(Frameworks, GroupsOfRanksHoldWhatSoManyRanksDo) {
  const Framework torchtitan = FindFramework("torchtitan", kFolders);
  const auto spec = [](int ranks, int64_t shard_ranks) {
    RunSpec made = SpecWith(
        fmt::format("model: llama-8b, seq_length: 4096, ranks: {}, device: cuda, gpu: b200, shard: full", ranks));
    made.trainer = "torchtitan";
    made.shard_ranks = shard_ranks;
    return made;
  };
  const RunSpec groups = spec(64, 8);
  EXPECT_EQ(NotEstimated(torchtitan, groups), "");
  EXPECT_EQ(PeakBytes(torchtitan, groups), PeakBytes(torchtitan, spec(8, 0)));
  const RunSpec priced = AsPriced(torchtitan, groups).first;
  EXPECT_EQ(priced.ranks, 64);
  EXPECT_EQ(priced.shard_ranks, 8);
  const auto wire_ns = [&](const RunSpec& point) {
    const auto [step, framework] = AsPriced(torchtitan, point);
    return PredictStep(step, AwsDevice(), framework).communication_ns;
  };
  EXPECT_GT(wire_ns(groups), wire_ns(spec(8, 0)));
  // The parts of 8 ranks, 32 GB of a machine, cross its network in both directions: 7/8 of them, at 0.8 of 400 GB/s.
  EXPECT_NEAR(wire_ns(groups) - wire_ns(spec(8, 0)), 2 * 7 / 8.0 * 4 * 8.03e9 / (0.8 * 400), 9e6)
      << "and what its hops take";
  // PyTorch's hybrid sharding averages in every micro-step.
  const auto in_two = [&](RunSpec point) {
    point.grad_accumulation = 2;
    return wire_ns(point);
  };
  EXPECT_NEAR(in_two(groups) - in_two(spec(8, 0)), 2 * (wire_ns(groups) - wire_ns(spec(8, 0))), 1e7);
}

// FSDP's SHARD_GRAD_OP keeps weights sharded between steps, and whole in 16 bits during a step. ZeRO's stage 2 keeps
// them whole.
TEST(Frameworks, GradientsAreSplitAsTheTrainerDoes) {
  const auto per_parameter = [](const char* name, const std::string& fields) {
    const Framework framework = FindFramework(name, kFolders);
    const auto peak = [&](const char* shard) {
      const RunSpec spec =
          SpecWith("model: llama-8b, seq_length: 512, ranks: 8, grad_accumulation: 2, " + fields + shard);
      EXPECT_EQ(NotEstimated(framework, spec), "");
      return static_cast<double>(PeakBytes(framework, spec));
    };
    return (peak("gradients") - peak("full")) / 8030261248.0;
  };
  EXPECT_NEAR(per_parameter("torchtitan", "shard: "), 2, 0.4) << "less the layers that are whole with `full`";
  EXPECT_NEAR(per_parameter("deepspeed", "shard: "), 2 * 7 / 8.0, 0.5) << "weights of 16 bits";
  EXPECT_EQ(
      AsPriced(FindFramework("deepspeed", kFolders), SpecWith("model: llama-8b, ranks: 8, shard: full")).second.overlap,
      1);
  EXPECT_EQ(AsPriced(FindFramework("deepspeed", kFolders), SpecWith("model: llama-8b, ranks: 8, shard: gradients"))
                .second.overlap,
            0);
}

TEST(Frameworks, ShippedAreWholeAndStandForDefinitionsThatShip) {
  for (const char* name : {"torchtitan", "megatron", "nemo", "llm-foundry", "deepspeed", "hf", "te-fsdp"}) {
    const Framework framework = FindFramework(name, kFolders);
    EXPECT_FALSE(framework.trainers.empty()) << name;
    EXPECT_EQ(Frameworks(kFolders).Of(framework.trainers.front())->name, name);
  }
}

// A device's efficiency figures were measured with this engine's steps.
TEST(Frameworks, DoNotTakeThisEnginesEfficiencyOfADevice) {
  Device device = AwsDevice();
  const RunSpec spec = SpecWith("model: llama-1b, seq_length: 4096, ranks: 8, shard: full");
  const auto [priced, as] = AsPriced(FindFramework("torchtitan", kFolders), spec);
  const double before = PredictStep(priced, device, as).step_ns;
  device.figures["efficiency.products"] = {.value = 0.3, .source = "here", .note = "", .date = ""};
  EXPECT_EQ(PredictStep(priced, device, as).step_ns, before);
  EXPECT_FALSE(PredictStep(priced, device, as).calibrated);
  EXPECT_GT(PredictStep(spec, device).step_ns, before);
}

TEST(Frameworks, EagerStepsMoveMoreBytes) {
  const Framework torchtitan = FindFramework("torchtitan", kFolders);
  RunSpec spec = SpecWith("model: llama-1b, ranks: 8, shard: full");
  EXPECT_EQ(AsPriced(torchtitan, spec).second.passes, torchtitan.passes);
  spec.trainer = "torchtitan";
  EXPECT_EQ(AsPriced(torchtitan, spec).second.passes, torchtitan.eager_passes);
  spec.own["compile"] = true;
  EXPECT_EQ(AsPriced(torchtitan, spec).second.passes, torchtitan.passes);
}

TEST(Frameworks, EveryFaultOfAFileIsSaidWithItsLine) {
  try {
    ParseFramework(R"(name: other
about: "x"
sources: {me: "I"}
efficiency:
  products: {value: 1.5, source: me}
  attention: {value: 0.5, source: you}
  power: {source: me}
memory:
  weights: {value: 4, source: me}
kept:
  widow: {value: 1, source: me}
evidence:
  time: {rows: 3, error: 0.1, spread: 1.2, gpus: [h1000], source: me}
)",
                   "mine.yaml");
    FAIL();
  } catch (const Error& e) {
    const std::string all = e.message();
    EXPECT_THAT(all, HasSubstr("mine.yaml:1:7: the name is 'other', and the file is called 'mine'"));
    EXPECT_THAT(all, HasSubstr("mine.yaml:5:21: efficiency.products is from 0.05 to 1"));
    EXPECT_THAT(all, HasSubstr("no source 'you' stands under sources"));
    EXPECT_THAT(all, HasSubstr("efficiency.power has no 'value'"));
    EXPECT_THAT(all, HasSubstr("memory.weights is a number of B, number, numbers"));
    EXPECT_THAT(all, HasSubstr("unknown figure of kept 'widow'"));
    EXPECT_THAT(all, HasSubstr("evidence has no 'memory': write `assumed`"));
    EXPECT_THAT(all, HasSubstr("unknown gpu 'h1000'"));
  }
}

}  // namespace
}  // namespace ridgeline::predict
