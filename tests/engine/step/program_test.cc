#include "engine/step/program.h"

#include <gtest/gtest.h>

#include "engine/device/cpu/executor.h"
#include "engine/ops/gemm.h"
#include "engine/train/cpu_kernels.h"
#include "engine/train/trainer.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

TEST(Program, TheSlabIsTheSameOnMetaAndOnTheCpu) {
  ForEachConfiguration([](Json values) {
    const StepProgram on_cpu = BuildStep(SpecFrom(values));
    const CpuExecutor executor(on_cpu.trace, on_cpu.layout, CpuKernels());
    values["device"] = "meta";
    const RunSpec meta = SpecFrom(values);
    EXPECT_EQ(executor.slab_bytes(), Train(meta, {}).result.memory.planned_peak_bytes);
  });
}

TEST(Program, TheSlabIsWithinThreePercentOfTheLargestLiveSum) {
  const auto check = [](const Json& values) {
    const StepProgram program = BuildStep(SpecFrom(values));
    EXPECT_LE(static_cast<double>(program.layout.slab_bytes),
              1.03 * static_cast<double>(program.layout.live_peak_bytes));
  };
  ForEachConfiguration(check);
  ForEachConfiguration([&](Json values) {
    values["grad_clip"] = 1.0;
    values["grad_accumulation"] = 3;
    check(values);
  });
  for (const char* model : {"llama-25m", "gpt-124m", "stack-1b", "llama-8b", "llama-64b"}) {
    for (const std::string& policy : kPolicies) check({{"model", model}, {"checkpointing", policy}});
  }
}

TEST(Program, Tf32DiffersFromFp32OnlyInTheOperandsOfProducts) {
  for (const char* gpu : {"none", "a100", "b200"}) {
    for (const std::string& family : kFamilies) {
      Json values = TinyModel(family);
      values.update({{"device", "meta"}, {"gpu", gpu}, {"precision", "fp32"}});
      const StepProgram fp32 = BuildStep(SpecFrom(values));
      values["precision"] = "tf32";
      const StepProgram tf32 = BuildStep(SpecFrom(values));
      EXPECT_EQ(tf32.layout.slab_bytes, fp32.layout.slab_bytes);
      EXPECT_EQ(tf32.layout.by_category, fp32.layout.by_category);
      ASSERT_EQ(tf32.trace.calls().size(), fp32.trace.calls().size());
      for (size_t i = 0; i < tf32.trace.calls().size(); ++i) {
        const OpCall& call = tf32.trace.calls()[i];
        EXPECT_EQ(call.op, fp32.trace.calls()[i].op);
        EXPECT_EQ(call.cost.format == MathFormat::kTF32, call.op == &kGemm) << call.op->name;
      }
    }
  }
}

TEST(Program, TheCategoriesAddUpToThePeak) {
  ForEachConfiguration([](const Json& values) {
    const StepProgram program = BuildStep(SpecFrom(values));
    int64_t sum = 0;
    for (const auto& [name, bytes] : program.layout.by_category) sum += bytes;
    EXPECT_EQ(sum, program.layout.slab_bytes);
  });
}

TEST(Program, CheckpointingFreesActivations) {
  for (const std::string& family : kFamilies) {
    Json values = TinyModel(family);
    values["layers"] = 12;
    values["batch_size"] = 8;
    const auto slab = [&](const char* policy) {
      values["checkpointing"] = policy;
      return BuildStep(SpecFrom(values)).layout.slab_bytes;
    };
    EXPECT_LT(slab("selective"), slab("none"));
    EXPECT_LT(slab("full"), slab("selective"));
  }
}

// The cost to trace and plan a step depends on its number of ops, which is the same for a few tokens as for 2^33.
TEST(Program, DoesNotGrowWithItsTokens) {
  for (const std::string& family : kFamilies) {
    Json values = TinyModel(family);
    values["seq_length"] = 8192;
    if (family == "gpt") values["positions"] = 8192;
    const auto program = [&](int64_t batch_size) {
      values["batch_size"] = batch_size;
      return BuildStep(SpecFrom(values));
    };
    const StepProgram many = program(1 << 7);  // 2^20 tokens: the maximum number of chunks of logits
    const StepProgram most = program(1 << 20);
    EXPECT_EQ(most.trace.calls().size(), many.trace.calls().size());
    EXPECT_EQ(most.trace.storages().size(), many.trace.storages().size());
    EXPECT_LE(many.trace.calls().size(), program(1).trace.calls().size() + 4U * kMaxLogitsChunks);
    EXPECT_GT(most.layout.slab_bytes, many.layout.slab_bytes);
  }
}

// Every storage grows at most linearly with the sequence, and no logits storage holds more than one chunk.
TEST(Program, NeverHoldsTheScoresOrAllLogits) {
  Json values = TinyModel("llama");
  values["vocab"] = 1000;
  values["batch_size"] = 1;
  values["seq_length"] = 2048;
  for (const int64_t chunk : {16, 1024, 1500, 4096}) {
    values["logits_chunk"] = chunk;
    const RunSpec spec = SpecFrom(values);
    const StepProgram program = BuildStep(spec);
    const int64_t scores = spec.seq_length * spec.seq_length * SizeOf(DType::kBF16);
    int64_t logits = 0;
    for (const Storage& storage : program.trace.storages()) {
      EXPECT_LT(storage.bytes, scores);
      if (storage.category != Category::kLogits) continue;
      logits += storage.bytes;
      EXPECT_LE(storage.bytes, chunk * spec.vocab * SizeOf(DType::kBF16));
    }
    EXPECT_EQ(logits, spec.seq_length * spec.vocab * SizeOf(DType::kBF16));
  }
}

// Chunks as large as those of before the field are not part of a point.
TEST(Program, AnotherChunkOfLogitsIsAnotherPoint) {
  Json values = TinyModel("llama");
  const std::string id = PointId(SpecFrom(values));
  values["logits_chunk"] = 1024;
  EXPECT_EQ(PointId(SpecFrom(values)), id);
  values["logits_chunk"] = 16;
  EXPECT_NE(PointId(SpecFrom(values)), id);
}

TEST(Program, ShardingDividesThePersistentState) {
  Json values = {{"model", "llama-1b"}, {"checkpointing", "full"}};
  const StepProgram whole = BuildStep(SpecFrom(values));
  values.update({{"ranks", 8}, {"shard", "full"}, {"communicator", "virtual"}});
  const StepProgram sharded = BuildStep(SpecFrom(values));
  const auto optimizer = [](const StepProgram& program) {
    return static_cast<double>(program.layout.by_category.at("optimizer"));
  };
  EXPECT_NEAR(optimizer(sharded), optimizer(whole) / 8, 1e-3 * optimizer(whole));
  EXPECT_LT(sharded.layout.slab_bytes, whole.layout.slab_bytes / 3);
}

TEST(Program, AWholeStepOf64BillionOverEightRanksIsAShortRecord) {
  const StepProgram program = BuildStep(SpecFrom({{"model", "llama-64b"},
                                                  {"checkpointing", "full"},
                                                  {"seq_length", 8192},
                                                  {"ranks", 8},
                                                  {"shard", "full"},
                                                  {"device", "meta"}}));
  EXPECT_GT(program.layout.slab_bytes, int64_t{50'000'000'000});
  // The time of planning depends on these counts, not on sizes: it is milliseconds.
  EXPECT_LT(program.trace.calls().size(), 200U * static_cast<size_t>(program.spec.layers));
  EXPECT_LT(program.trace.storages().size(), 200U * static_cast<size_t>(program.spec.layers));
}

TEST(Program, CountsTheFlopsOfATransformer) {
  const StepProgram program = BuildStep(SpecFrom({{"model", "llama-8b"}, {"seq_length", 8192}}));
  const FlopFigures flops = CountFlops(program);
  // 6 N per token for the multiplied weights (all but the embedding), plus attention.
  const double weights = 8030261248.0 - 128256.0 * 4096;
  const double attention = 3 * 4.0 * 32 * 4096 * 8192;
  EXPECT_NEAR(flops.model_non_causal / 8192, 6 * weights + attention, 1e-3 * 6 * weights);
  EXPECT_NEAR(flops.model_causal / 8192, 6 * weights + attention / 2, 1e-3 * 6 * weights);
  EXPECT_GT(flops.executed, 0.95 * flops.model_causal);
  const FlopFigures full =
      CountFlops(BuildStep(SpecFrom({{"model", "llama-8b"}, {"seq_length", 8192}, {"checkpointing", "full"}})));
  EXPECT_GT(full.executed, 1.2 * flops.executed);
  EXPECT_EQ(full.model_causal, flops.model_causal);
}

}  // namespace
}  // namespace ridgeline::engine
