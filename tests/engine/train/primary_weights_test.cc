// Weights kept as codes (RunSpec::primary_weights: quantized): their memory, and their effect on training.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <fstream>
#include <set>

#include "engine/device/cpu/executor.h"
#include "engine/step/program.h"
#include "engine/train/cpu_kernels.h"
#include "engine/train/model_state.h"
#include "engine/train/trainer.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/train/rank_processes.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

struct Kind {
  const char* precision;
  const char* scaling;
};
constexpr Kind kAll[] = {
    {"fp8", "delayed"}, {"fp8", "current"}, {"mxfp8", "round_up"}, {"mxfp8", "floor"}, {"nvfp4", "none"}};

Json With(const Json& model, const Kind& recipe, const char* state, bool quantized) {
  Json values = model;
  values.update({{"precision", recipe.precision},
                 {"scaling", recipe.scaling},
                 {"state_precision", state},
                 {"primary_weights", quantized ? "quantized" : "high_precision"},
                 {"warmup_steps", 1},
                 {"steps", 4},
                 {"learning_rate", 3e-3}});
  return values;
}

std::vector<double> Losses(const Json& values) {
  const RunResult result = Train(SpecFrom(values), {}).result;
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  return result.loss;
}

// An fp32 master weight is quantized in the same way as its bf16 number would be for each product.
TEST(PrimaryWeights, WithAMasterTheLossSeriesIsThatOfHighPrecisionToTheBit) {
  for (const std::string& family : kFamilies) {
    for (const Kind& recipe : kAll) {
      if (std::string(recipe.scaling) == "delayed") continue;  // its scales come from another step
      Json model = TinyModel(family);
      model.update({{"grad_clip", 0.5}, {"grad_accumulation", 2}, {"dropout", 0.1}, {"bf16_last_layers", 1}});
      SCOPED_TRACE(family + " " + recipe.precision + " " + recipe.scaling);
      EXPECT_EQ(Losses(With(model, recipe, "fp32", true)), Losses(With(model, recipe, "fp32", false)));
    }
  }
}

TEST(PrimaryWeights, TheFirstStepIsThatOfHighPrecisionInEveryRecipe) {
  for (const char* family : {"llama", "gpt"}) {
    for (const Kind& recipe : kAll) {
      for (const char* state : {"fp32", "bf16"}) {
        SCOPED_TRACE(::testing::Message()
                     << family << " " << recipe.precision << " " << recipe.scaling << " " << state);
        Json quantized = With(TinyModel(family), recipe, state, true);
        Json high = With(TinyModel(family), recipe, state, false);
        for (Json* values : {&quantized, &high}) values->update({{"warmup_steps", 0}, {"steps", 1}});
        EXPECT_EQ(Losses(quantized), Losses(high));
      }
    }
  }
}

// Learns from structured text: without master weights, updates far below a step of the format must not be lost.
TEST(PrimaryWeights, CodesAloneLearnText) {
  const TempDir dir;
  {
    std::ofstream text(dir / "text");
    for (int i = 0; i < 400; ++i) text << "the quick brown fox jumps over the lazy dog; ";
  }
  for (const Kind& recipe : kAll) {
    Json values = With(TinyModel("llama"), recipe, "bf16", true);
    values.update({{"vocab", 256}, {"data", (dir / "text").string()}, {"steps", 60}, {"grad_clip", 1.0}});
    values.update({{"schedule", "cosine"}, {"lr_warmup_steps", 5}});
    const std::vector<double> losses = Losses(values);
    EXPECT_LT(losses.back(), 0.6 * losses.front()) << recipe.precision << " " << recipe.scaling;
  }
}

// Adam's first update equals the learning rate everywhere. Here that is far below a step of the format, but on average
// it is not lost.
TEST(PrimaryWeights, UpdatesBelowAStepOfTheFormatAreNotLost) {
  constexpr double kRate = 2e-4;
  constexpr double kStep = 0x1p-9;  // the step of small numbers, with the first scale, 1
  const StepProgram program = BuildStep(SpecFrom(With(TinyModel("llama"), {"fp8", "delayed"}, "bf16", true)), true);
  CpuExecutor executor(program.trace, program.layout, CpuKernels());
  ModelState model(program, executor);
  model.Initialize();
  const auto p = static_cast<size_t>(program.shape.layers[1].back().in.weight);
  const ParameterPart all{"", 0, program.shape.parameters[p].rows};
  const std::vector<float> before = model.Weight(p, all);
  executor.Step({1, kRate, 5});
  const std::vector<float> after = model.Weight(p, all);
  const std::vector<float> gradient = model.Gradient(p, all);
  const auto n = static_cast<double>(before.size());
  double moved = 0;
  double changed = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    moved += std::copysign(1.0, gradient[i]) * (static_cast<double>(before[i]) - static_cast<double>(after[i])) / n;
    changed += before[i] == after[i] ? 0 : 1 / n;
  }
  EXPECT_NEAR(moved, kRate, 5 * std::sqrt(kRate * kStep / n));
  EXPECT_NEAR(changed, kRate / kStep, 0.03);
}

int64_t Aligned(int64_t n) { return (n + 63) / 64 * 64; }

struct Bytes {
  int64_t parameters = 0;
  int64_t optimizer = 0;
};
Bytes Planned(const StepProgram& program) {
  Bytes bytes;
  for (const Storage& storage : program.trace.storages()) {
    if (!storage.persistent) continue;
    if (storage.category == Category::kParameters) bytes.parameters += storage.bytes;
    if (storage.category == Category::kOptimizer) bytes.optimizer += storage.bytes;
  }
  return bytes;
}

// The bytes of a matrix that is quantized along its rows: its codes, its scales in tiles of 128 x 4, and its own scale.
int64_t CodeBytes(const std::string& precision, int64_t rows, int64_t cols) {
  const auto up = [](int64_t value, int64_t to) { return (value + to - 1) / to * to; };
  if (precision == "fp8") return rows * cols + 4;
  const int64_t block = precision == "mxfp8" ? 32 : 16;
  const int64_t codes = rows * up(cols, block) / (precision == "mxfp8" ? 1 : 2);
  const int64_t scales = up(rows, 128) * up(up(cols, block) / block, 4);
  return codes + scales + (precision == "mxfp8" ? 0 : 4);
}

// The figures of the documentation's table, from the shapes only.
Bytes Expected(const ModelShape& shape, const std::string& precision, bool master, int64_t ranks) {
  std::set<int> quantized;
  for (const auto& layer : shape.layers) {
    for (const SublayerParameters& sublayer : layer) quantized.insert({sublayer.in.weight, sublayer.out.weight});
  }
  Bytes bytes;
  const auto add = [&](const std::vector<int>& group, bool codes) {
    int64_t size = 0;
    for (const int parameter : group) {
      const Parameter& p = shape.parameters[static_cast<size_t>(parameter)];
      size = (ranks > 1 ? Aligned(size) : size) + p.elements();
      if (codes) bytes.parameters += CodeBytes(precision, p.rows, p.cols);
      if (codes && precision == "mxfp8") bytes.parameters += CodeBytes(precision, p.cols, p.rows);
    }
    const int64_t part = ranks > 1 ? Aligned((size + ranks - 1) / ranks) : size;
    if (!codes) bytes.parameters += 2 * part * ranks;
    if (master) bytes.parameters += (codes ? 4 : 2) * part;
    bytes.optimizer += (master ? 8 : 4) * part;
  };
  for (const std::vector<int>& group : shape.groups) {
    std::vector<int> codes, others;
    for (const int parameter : group) (quantized.contains(parameter) ? codes : others).push_back(parameter);
    // A single rank moves nothing: each parameter is its own group, which changes no sum.
    if (!codes.empty()) add(codes, true);
    if (!others.empty()) add(others, false);
  }
  return bytes;
}

TEST(PrimaryWeights, TakeTheBytesOfTheirCodesScalesAndState) {
  for (const Kind& recipe : kAll) {
    for (const char* state : {"fp32", "bf16"}) {
      for (const int64_t ranks : {1, 8}) {
        for (const Json& model : {TinyModel("gpt"), Json{{"model", "llama-10m"}}}) {
          Json values = With(model, recipe, state, true);
          values.update({{"ranks", ranks}, {"shard", "optimizer"}});
          SCOPED_TRACE(values.dump());
          const StepProgram program = BuildStep(SpecFrom(values));
          const Bytes planned = Planned(program);
          const Bytes expected = Expected(program.shape, recipe.precision, std::string(state) == "fp32", ranks);
          EXPECT_EQ(planned.parameters, expected.parameters);
          EXPECT_EQ(planned.optimizer, expected.optimizer);
        }
      }
    }
  }
}

TEST(PrimaryWeights, ThePlanOfCodesAloneIsSmaller) {
  for (const Kind& recipe : {kAll[0], kAll[4]}) {
    const auto slab = [&](bool quantized) {
      Json values = With({{"model", "llama-1b"}, {"checkpointing", "full"}}, recipe, "bf16", quantized);
      return BuildStep(SpecFrom(values)).layout.slab_bytes;
    };
    // One byte of each of 973 million linear weights, less the temporaries of an update.
    EXPECT_LT(slab(true), slab(false) - 850'000'000) << recipe.precision;
  }
}

// The losses of two processes.
std::vector<double> LossesOfRanks(Json values) {
  values["ranks"] = 2;
  const RunSpec spec = SpecFrom(values);
  testing::RankProcesses ranks;
  ranks.StartAll(spec);
  const std::vector<ExitStatus> ends = ranks.Wait();
  for (size_t rank = 0; rank < ends.size(); ++rank) EXPECT_TRUE(ends[rank].ok()) << ranks.Log(rank);
  if (!ranks.HasResult()) return {};
  const RunResult result = ranks.Result();
  for (int64_t rank = 0; rank < spec.ranks; ++rank) {
    EXPECT_EQ(result.ranks[static_cast<size_t>(rank)].planned_peak_bytes,
              BuildStep(spec, false, rank).layout.slab_bytes);
  }
  return result.loss;
}

TEST(PrimaryWeights, ShardedWeightsHaveTheBitsOfHighPrecision) {
  for (const char* shard : {"optimizer", "none"}) {
    for (const Kind& recipe : {kAll[2], kAll[4]}) {
      Json model = TinyModel("llama");
      model["shard"] = shard;
      SCOPED_TRACE(::testing::Message() << shard << " " << recipe.precision);
      const std::vector<double> losses = LossesOfRanks(With(model, recipe, "fp32", true));
      EXPECT_EQ(losses.size(), 5U);
      EXPECT_EQ(losses, LossesOfRanks(With(model, recipe, "fp32", false)));
    }
  }
}

// Random numbers belong to elements, whichever rank updates them. Ranks change only how gradients are rounded.
TEST(PrimaryWeights, ShardedWeightsWithoutMasterAreThoseOfOneProcess) {
  omp_set_num_threads(1);
  for (const Kind& recipe : {kAll[0], kAll[4]}) {
    Json model = TinyModel("llama");
    model["batch_size"] = 1;
    model["shard"] = "optimizer";
    Json values = With(model, recipe, "bf16", true);
    const std::vector<double> got = LossesOfRanks(values);
    values["batch_size"] = 2;
    const std::vector<double> want = Losses(values);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-2 * want[i]) << recipe.precision;
  }
}

}  // namespace
}  // namespace ridgeline::engine
