#include "engine/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

Json Tiny(const std::string& family = "llama") {
  Json values = TinyModel(family);
  values["warmup_steps"] = 1;
  values["steps"] = 4;
  return values;
}

TEST(Trainer, ComputesTf32AsOneThatIsEmulated) {
  Json values = Tiny();
  values["precision"] = "fp32";
  const RunResult fp32 = Train(SpecFrom(values), {}).result;
  values["precision"] = "tf32";
  const RunResult tf32 = Train(SpecFrom(values), {}).result;
  ASSERT_EQ(tf32.status, RunStatus::kOk) << tf32.message;
  EXPECT_TRUE(tf32.emulated);
  EXPECT_NE(tf32.loss, fp32.loss);
  EXPECT_EQ(tf32.memory.planned_peak_bytes, fp32.memory.planned_peak_bytes);
  for (size_t i = 0; i < fp32.loss.size(); ++i) EXPECT_NEAR(tf32.loss[i], fp32.loss[i], 1e-3 * fp32.loss[i]);
}

TEST(Trainer, FillsInEveryFigure) {
  Json values = Tiny();
  values["repeats"] = 2;
  const RunSpec spec = SpecFrom(values);
  int reports = 0;
  TrainOptions options;
  options.command_line = {"trainer", "--flag"};
  options.on_step = [&](const StepReport& report) {
    EXPECT_EQ(report.step, ++reports);
    EXPECT_EQ(report.total, 9);
  };
  const RunResult r = Train(spec, options).result;
  ASSERT_EQ(r.status, RunStatus::kOk) << r.message;
  EXPECT_EQ(reports, 9);
  EXPECT_EQ(r.point_id, PointId(spec));
  EXPECT_EQ(r.provenance, Provenance::kMeasured);
  EXPECT_FALSE(r.emulated);
  ASSERT_EQ(r.step_ns.all_ns.size(), 9U);
  EXPECT_EQ(r.loss.size(), 9U);
  EXPECT_EQ(r.tokens_per_step, 2 * 37);
  EXPECT_NEAR(r.throughput.steady_tokens_per_s, 74e9 / static_cast<double>(r.step_ns.median_ns), 1);
  const int64_t all = std::accumulate(r.step_ns.all_ns.begin(), r.step_ns.all_ns.end(), int64_t{0});
  EXPECT_NEAR(r.throughput.cold_tokens_per_s, 9 * 74e9 / static_cast<double>(all), 1);
  EXPECT_GE(r.step_ns.p95_ns, r.step_ns.median_ns);
  EXPECT_GT(r.memory.planned_peak_bytes, 0);
  EXPECT_GT(r.memory.rss_peak_bytes, 0);
  EXPECT_GT(r.flops.model_causal, 0);
  for (const char* key : {"cpu", "cores", "cpu_flags", "kernel", "hostname", "libraries", "git_commit", "command"}) {
    EXPECT_TRUE(r.environment.contains(key)) << key;
  }
  EXPECT_EQ(r.environment.at("command"), "trainer --flag");
}

TEST(Trainer, TheLossFallsOnText) {
  const auto path = std::filesystem::temp_directory_path() / ("text." + std::to_string(::getpid()));
  {
    std::ofstream text(path);
    for (int i = 0; i < 400; ++i) text << "the quick brown fox jumps over the lazy dog; ";
  }
  for (const char* family : {"llama", "gpt"}) {
    for (const char* precision : {"fp32", "bf16"}) {
      Json values = Tiny(family);
      values.update({{"vocab", 256},
                     {"data", path.string()},
                     {"precision", precision},
                     {"steps", 60},
                     {"learning_rate", 3e-3},
                     {"grad_clip", 1.0},
                     {"schedule", "cosine"},
                     {"lr_warmup_steps", 5}});
      const RunResult r = Train(SpecFrom(values), {}).result;
      ASSERT_EQ(r.status, RunStatus::kOk) << r.message;
      EXPECT_NEAR(r.loss.front(), std::log(256.0), 0.5);
      EXPECT_LT(r.loss.back(), 0.6 * r.loss.front()) << family << " " << precision;
      EXPECT_EQ(r.grad_norm.size(), r.loss.size());
      EXPECT_GT(r.grad_norm.front(), 0);
    }
  }
  std::filesystem::remove(path);
}

TEST(Trainer, TheSameSeedGivesTheSameLossesToTheBit) {
  for (const std::string& family : kFamilies) {
    Json values = Tiny(family);
    values["dropout"] = 0.1;
    const auto first = Train(SpecFrom(values), {}).result.loss;
    EXPECT_EQ(Train(SpecFrom(values), {}).result.loss, first);
    values["seed"] = 99;
    EXPECT_NE(Train(SpecFrom(values), {}).result.loss, first);
  }
}

TEST(Trainer, AccumulationEqualsALargerBatch) {
  Json values = Tiny();
  values["precision"] = "fp32";
  values["batch_size"] = 4;
  const auto whole = Train(SpecFrom(values), {}).result.loss;
  values["batch_size"] = 2;
  values["grad_accumulation"] = 2;
  const auto parts = Train(SpecFrom(values), {}).result.loss;
  ASSERT_EQ(whole.size(), parts.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(parts[i], whole[i], 1e-5 * whole[i]);
}

// Chunks of logits change the order of the head's sums, and nothing else. Within a chunk size, policies agree.
TEST(Trainer, ChunksOfLogitsChangeNoMoreThanTheOrderOfSums) {
  for (const std::string family : {"llama", "gpt"}) {
    Json values = TinyModel(family);
    values.update({{"precision", "fp32"}, {"steps", 3}, {"warmup_steps", 0}, {"grad_clip", 1.0}});
    const auto train = [&](int64_t chunk, const char* policy) {
      values.update({{"logits_chunk", chunk}, {"checkpointing", policy}});
      return Train(SpecFrom(values), {}).result;
    };
    const RunResult whole = train(1024, "none");  // all 74 tokens
    const RunResult parts = train(16, "none");
    ASSERT_EQ(parts.loss.size(), whole.loss.size());
    for (size_t i = 0; i < whole.loss.size(); ++i) {
      EXPECT_NEAR(parts.loss[i] / whole.loss[i], 1, 1e-5) << i;
      EXPECT_NEAR(parts.grad_norm[i] / whole.grad_norm[i], 1, 1e-4) << i;
    }
    EXPECT_EQ(train(16, "full").loss, parts.loss);
    EXPECT_LT(parts.memory.by_category.at("logits"), whole.memory.by_category.at("logits"));
  }
}

TEST(Trainer, AVirtualRankTrainsInItsOwnMemory) {
  Json values = Tiny();
  values.update({{"ranks", 8}, {"shard", "full"}, {"communicator", "virtual"}});
  const RunResult r = Train(SpecFrom(values), {}).result;
  ASSERT_EQ(r.status, RunStatus::kOk) << r.message;
  EXPECT_EQ(r.communicator, "virtual");
  EXPECT_EQ(r.tokens_per_step, 8 * 2 * 37);
}

TEST(Trainer, APlanThatDoesNotFitIsOomHostWithItsBytes) {
  const RunResult r = Train(SpecFrom({{"model", "llama-64b"}}), {}).result;
  EXPECT_EQ(r.status, RunStatus::kOomHost);
  EXPECT_EQ(r.evidence.at("wanted_bytes"), std::to_string(r.memory.planned_peak_bytes));
  EXPECT_GT(std::stoll(r.evidence.at("available_bytes")), 0);
  EXPECT_FALSE(r.hint.empty());
}

TEST(Trainer, AnExplodingLossIsDiverged) {
  Json values = Tiny();
  values.update({{"learning_rate", 1e3}, {"steps", 50}, {"precision", "fp32"}, {"weight_decay", 100.0}});
  const RunResult r = Train(SpecFrom(values), {}).result;
  EXPECT_EQ(r.status, RunStatus::kDiverged);
  EXPECT_TRUE(r.evidence.contains("step"));
  EXPECT_FALSE(std::isfinite(r.loss.back()));
}

TEST(Trainer, DataShorterThanASequenceIsInvalid) {
  const auto path = std::filesystem::temp_directory_path() / ("short." + std::to_string(::getpid()));
  std::ofstream(path) << "too short";
  Json values = Tiny();
  values.update({{"vocab", 256}, {"data", path.string()}});
  const RunResult r = Train(SpecFrom(values), {}).result;
  EXPECT_EQ(r.status, RunStatus::kInvalid);
  EXPECT_EQ(r.message, "the data file " + path.string() + " has 9 bytes; a sequence of 37 tokens needs 38");
  std::filesystem::remove(path);
  EXPECT_NE(Train(SpecFrom(values), {}).result.status, RunStatus::kOk);
}

TEST(Trainer, LearningRateWarmsUpAndFollowsTheCosine) {
  RunSpec spec;
  spec.learning_rate = 1;
  spec.lr_warmup_steps = 10;
  EXPECT_DOUBLE_EQ(LearningRate(spec, 1, 100), 0.1);
  EXPECT_DOUBLE_EQ(LearningRate(spec, 10, 100), 1);
  EXPECT_DOUBLE_EQ(LearningRate(spec, 50, 100), 1);
  spec.schedule = "cosine";
  spec.learning_rate_min = 0.2;
  EXPECT_DOUBLE_EQ(LearningRate(spec, 55, 100), 0.6);
  EXPECT_DOUBLE_EQ(LearningRate(spec, 100, 100), 0.2);
}

}  // namespace
}  // namespace ridgeline::engine
