// The memory of a step with many micro-steps, predicted from one with few and compared with the step's own plan.
#include "predict/memory_forecast.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "engine/step/program.h"
#include "run/spec.h"
#include "sweep/expand.h"

namespace ridgeline::predict {
namespace {

// 120 steps of all families, precisions, policies and ways to share, each combined with several of the others. A
// micro-step has 40 tokens, so that sizes are no multiple of the storages' alignment.
constexpr char kSteps[] = R"(
name: steps
zip:
  - family: [llama, gpt, stack]
    vocab: [96, 96, 0]
    positions: [0, 64, 0]
  - precision: [fp32, bf16, fp16, fp8, mxfp8, nvfp4, bf16, fp8, bf16, mxfp8]
    checkpointing: [none, selective, full, full/2, none, full, full, selective, none, full/2]
    ranks: [1, 1, 2, 4, 1, 2, 4, 3, 1, 4]
    shard: [none, none, gradients, full, none, none, full, full, none, optimizer]
    state_precision: [fp32, fp32, fp32, fp32, fp32, fp32, fp32, fp32, bf16, fp32]
matrix: {batch_size: [1, 3], gpu: [none, h100]}
defaults: {device: meta, layers: 3, hidden: 64, heads: 2, ffn: 96, seq_length: 40}
)";

TEST(PredictMemory, ManyMicroStepsHaveTheMemoryOfTheStepItself) {
  int steps = 0;
  for (const Point& point : sweep::Expand(sweep::ParseSweep(kSteps, "steps.yaml"))) {
    for (const int64_t micro_steps : {3, 4, 11}) {
      RunSpec spec = point.spec;
      spec.grad_accumulation = micro_steps;
      const engine::Layout layout = engine::BuildStep(spec).layout;
      const MemoryForecast forecast = PredictMemory(spec);
      EXPECT_EQ(forecast.planned_peak_bytes, layout.slab_bytes) << EncodeSpec(spec);
      EXPECT_EQ(forecast.by_category, layout.by_category) << EncodeSpec(spec);
      ++steps;
    }
  }
  EXPECT_EQ(steps, 3 * 120);
}

TEST(PredictMemory, RefusesAStepThatIsTooLargeToTrace) {
  const std::string sweep = R"(
name: endless
defaults: {device: meta, layers: 4096, hidden: 64, heads: 2, ffn: 96, vocab: 96, ranks: 2, grad_accumulation: 4096}
)";
  try {
    PredictMemory(sweep::Expand(sweep::ParseSweep(sweep, "endless.yaml")).at(0).spec);
    FAIL() << "it has half a billion calls";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_NE(e.message().find("4096 layers x 4096 micro-steps"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace ridgeline::predict
