#include "engine/step/budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "engine/step/program.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

std::map<std::string, double> PartsInMs(const std::vector<BudgetLine>& lines) {
  std::map<std::string, double> parts;
  for (const BudgetLine& line : lines) parts[std::string(line.part)] += line.floor_ns / 1e6;
  return parts;
}
std::vector<BudgetLine> BudgetFor(Json values) {
  values.update({{"device", "meta"}, {"gpu", "h200"}});
  return Budget(BuildStep(SpecFrom(values)).trace, *SpeedOf("h200"));
}

// Computed by hand from the model's shape: the parts take what they must, and no more.
TEST(Budget, AStepOfALargeModelIsWhatItsShapeAsksFor) {
  auto parts = PartsInMs(BudgetFor({{"model", "llama-8b"},
                                    {"precision", "bf16"},
                                    {"batch_size", 1},
                                    {"seq_length", 8192},
                                    {"checkpointing", "none"}}));
  const DeviceSpeed speed = *SpeedOf("h200");
  const double tokens = 8192;
  const double layers = 32;
  const double hidden = 4096;
  const double ffn = 14336;
  const double vocab = 128256;
  const double kv = 1024;
  const double multiplied = layers * (2 * hidden * hidden + 2 * hidden * kv + 3 * hidden * ffn) + hidden * vocab;
  const double products = 6 * multiplied * tokens / speed.flops * 1e3;
  EXPECT_NEAR(parts["linear products and head"], products, 0.01 * products);
  const double scores = layers * hidden * 2 * tokens * tokens;
  const double attention = scores / speed.attention_flops * 1e3 + 2.5 * scores / speed.attention_backward_flops * 1e3;
  EXPECT_NEAR(parts["attention"], attention, 0.01 * attention);
  const double parameters =
      8030261248;  // weight, m and v in fp32, read and written; the gradient and the weight in bf16
  const double updates = 28 * parameters / speed.bytes * 1e3;
  EXPECT_NEAR(parts["optimizer, one pass"], updates, 0.01 * updates);
  // The numbers of a token and layer, each read or written once: norms, residual, RoPE and the activation, in both
  // passes. A norm takes its input from the residual's sum, which it computes itself; only the first norm reads the
  // embedding's output. A norm's gradient is summed in parts, in fp32, which are written and read: two for each
  // multiprocessor of an H200.
  const double parts_of_norms = (2 * layers + 1) * 2 * 4 * (2 * 132 * hidden);
  const double of_layer = 2 * (1 + 4) * hidden + 2 * 3 * hidden + 2 * 2 * (hidden + kv) + (3 + 5) * ffn;
  const double between = layers * of_layer + 1 * hidden + (1 + 3) * hidden;
  EXPECT_NEAR(parts["norms, residual, RoPE, activation"], (2 * tokens * between + parts_of_norms) / speed.bytes * 1e3,
              0.25);
  EXPECT_NEAR(parts["loss, gradient in place"], 2 * 2 * tokens * vocab / speed.bytes * 1e3, 0.1);
  EXPECT_LT(parts[""], 0.005 * (products + attention + updates));
}

TEST(Budget, PassesThatAStepCouldDoWithoutAreNamed) {
  const Json values = {{"model", "llama-8b"},     {"batch_size", 1},     {"seq_length", 8192},
                       {"checkpointing", "none"}, {"precision", "bf16"}, {"grad_clip", 0.0}};
  const auto beyond = [&](const char* field, const Json& value) {
    Json changed = values;
    changed[field] = value;
    return PartsInMs(BudgetFor(changed))[""];
  };
  const double none = beyond("precision", "bf16");
  EXPECT_GT(beyond("checkpointing", "full"), none + 100) << "full checkpointing repeats the forward pass";
  EXPECT_GT(beyond("precision", "fp8"), none + 10) << "quantizing";
  EXPECT_GT(beyond("grad_clip", 1.0), none + 5) << "clipping reads all gradients once more";
}

// With delayed scaling, a norm or an activation quantizes its own output, in the layers that are quantized.
TEST(Budget, CodesOfAScaleThatIsKnownAreWrittenByWhatMakesTheNumbers) {
  const auto calls_of = [](const char* family, const char* gpu, const char* scaling, const char* policy) {
    Json values = TinyModel(family);
    values.update({{"precision", "fp8"}, {"scaling", scaling}, {"checkpointing", policy}, {"bf16_first_layers", 1}});
    if (*gpu != 0) values.update({{"device", "meta"}, {"gpu", gpu}});
    std::map<std::string, int64_t> calls;
    const StepProgram program = BuildStep(SpecFrom(values));
    for (const OpCall& call : program.trace.calls()) ++calls[call.op->name];
    return calls;
  };
  auto calls = calls_of("llama", "h200", "delayed", "none");
  EXPECT_EQ(calls["residual_rms_norm_quantize"], 2 * 2);
  EXPECT_EQ(calls["swiglu_quantize"], 2);
  EXPECT_EQ(calls["rms_norm"], 1) << "the embedding's";
  EXPECT_EQ(calls["residual_rms_norm"], 1 + 1) << "of the first layer, and the last norm";
  EXPECT_EQ(calls["dropout_add"] + calls["rms_norm_quantize"], 0) << "norms compute the sums";
  EXPECT_EQ(calls["swiglu"], 1);
  EXPECT_EQ(calls["transpose_quantized"], 2 * 2) << "norms' columns";
  EXPECT_EQ(calls["swiglu_backward_quantize"], 2);
  EXPECT_EQ(calls["swiglu_backward"], 1);
  // Weights and attention's output in both orientations, and the other gradients. Attention's backward pass also reads
  // its output.
  EXPECT_EQ(calls["quantize"], 2 * (4 + 4 + 3 + 2));
  calls = calls_of("llama", "h200", "delayed", "selective");
  EXPECT_EQ(calls["residual_rms_norm_quantize"], 2 * 2);
  EXPECT_EQ(calls["rms_norm_quantize"], 2 * 2) << "recomputed from the kept sums";
  EXPECT_EQ(calls["swiglu_quantize"], 2 * 2);
  EXPECT_EQ(calls["quantize"], 2 * (4 + 4 + 3 + 2));
  calls = calls_of("gpt", "h200", "delayed", "none");
  EXPECT_EQ(calls["residual_layer_norm_quantize"], 2 * 2);
  EXPECT_EQ(calls["gelu_quantize"], 2);
  EXPECT_EQ(calls["gelu_backward_quantize"], 2);
  EXPECT_EQ(calls["gelu_backward"], 1);
  EXPECT_EQ(calls["column_sum"], 3 * 3 + 1) << "the quantized layers' biases are summed with GELU's gradient";
  for (const auto& [gpu, scaling] : {std::pair{"", "delayed"}, {"h200", "current"}}) {
    calls = calls_of("llama", gpu, scaling, "none");
    EXPECT_EQ(calls["residual_rms_norm_quantize"] + calls["swiglu_quantize"], 0) << gpu << scaling;
    EXPECT_EQ(calls["residual_rms_norm"], 2 * 3) << gpu << scaling;
    EXPECT_EQ(calls["quantize"], 2 * (4 + 4 + 4 + 2 + 3)) << gpu << scaling;
  }
}

TEST(Budget, AGpuIsAsFastAsItsMakerSaysByTheSharesThatAnH200Gets) {
  const auto products_in_ms = [](const char* gpu, const char* precision) {
    Json values = {{"model", "llama-1b"}, {"precision", precision}, {"device", "meta"}, {"gpu", gpu}};
    return PartsInMs(Budget(BuildStep(SpecFrom(values)).trace, *SpeedOf(gpu)))["linear products and head"];
  };
  const DeviceSpeed h200 = *SpeedOf("h200");
  EXPECT_NEAR(h200.bytes, 4.3e12, 1e6);
  EXPECT_NEAR(h200.flops, 0.93 * 790e12, 1e6);
  const DeviceSpeed b200 = *SpeedOf("b200");
  EXPECT_NEAR(b200.bytes / h200.bytes, 8 / 4.8, 1e-9);
  EXPECT_NEAR(b200.attention_flops / h200.attention_flops, 2250.0 / 989, 1e-9);
  // Blocks with scales; an H200 multiplies them as bf16.
  EXPECT_GE(products_in_ms("h200", "mxfp8"), products_in_ms("h200", "bf16"));
  EXPECT_LT(products_in_ms("b200", "mxfp8"), 0.8 * products_in_ms("b200", "bf16"));
  EXPECT_LT(products_in_ms("b200", "nvfp4"), 0.9 * products_in_ms("b200", "mxfp8"));
  EXPECT_LT(products_in_ms("b300", "nvfp4"), products_in_ms("b200", "nvfp4"));
  EXPECT_FALSE(SpeedOf("l40s"));
  EXPECT_FALSE(SpeedOf("none"));
}

// A scale that depends on all numbers costs one more reading of them, which has its own name.
TEST(Budget, NumbersThatAreReadTwiceToBeQuantizedAreNamed) {
  const auto quantizing = [](const char* gpu, const char* precision, const char* scaling) {
    Json values = TinyModel("llama");
    values.update({{"precision", precision}, {"device", "meta"}, {"gpu", gpu}});
    if (*scaling != 0) values["scaling"] = scaling;
    std::set<std::string> reasons;
    for (const BudgetLine& line : Budget(BuildStep(SpecFrom(values)).trace, *SpeedOf(gpu))) {
      if (line.op == "quantize") reasons.emplace(line.reason);
    }
    return reasons;
  };
  const std::set<std::string> once = {"a separate pass: the kernel that makes the numbers could write their codes"};
  const std::set<std::string> twice = {"two passes of their own: the scale needs the largest of the numbers first"};
  EXPECT_EQ(quantizing("h200", "fp8", "delayed"), once);
  EXPECT_EQ(quantizing("h200", "fp8", "current"), twice);
  EXPECT_EQ(quantizing("b200", "mxfp8", ""), once);
  EXPECT_EQ(quantizing("b200", "nvfp4", ""), twice);
}

TEST(Budget, AStepsPeakIsThatOfTheFormatThatMostIsMultipliedIn) {
  const auto peak = [](const char* gpu, const char* precision) {
    const Json values = {
        {"model", "llama-1b"}, {"seq_length", 2048}, {"precision", precision}, {"device", "meta"}, {"gpu", gpu}};
    const auto [format, flops] = PeakOf(BuildStep(SpecFrom(values)).trace, *SpeedOf(gpu));
    return std::pair(std::string(format), std::llround(flops / 1e9));
  };
  EXPECT_EQ(peak("h200", "fp32"), std::pair(std::string("fp32"), 67'000LL));
  EXPECT_EQ(peak("h200", "tf32"), std::pair(std::string("tf32"), 494'500LL));
  EXPECT_EQ(peak("h200", "bf16"), std::pair(std::string("bf16"), 989'000LL));
  EXPECT_EQ(peak("h200", "fp16"), std::pair(std::string("fp16"), 989'000LL));
  EXPECT_EQ(peak("h200", "fp8"), std::pair(std::string("fp8"), 1'978'000LL));
  EXPECT_EQ(peak("b200", "mxfp8"), std::pair(std::string("mxfp8"), 4'500'000LL));
  EXPECT_EQ(peak("b200", "nvfp4"), std::pair(std::string("fp4"), 9'000'000LL));
  EXPECT_EQ(peak("h200", "nvfp4"), std::pair(std::string("bf16"), 989'000LL)) << "emulated";
}

// Every call of a trace is counted, and a call in no part has a reason.
TEST(Budget, HasEveryCallOfEveryTinyStep) {
  ForEachConfiguration([](Json values) {
    values.update({{"dropout", 0.1}, {"device", "meta"}, {"gpu", "h200"}});
    const StepProgram program = BuildStep(SpecFrom(values));
    size_t calls = 0;
    double flops = 0;
    for (const BudgetLine& line : Budget(program.trace, *SpeedOf("h200"))) {
      calls += static_cast<size_t>(line.calls);
      flops += line.flops;
      EXPECT_NE(line.part.empty(), line.reason.empty()) << line.op;
      EXPECT_GT(line.floor_ns, 0) << line.op;
    }
    EXPECT_EQ(calls, program.trace.calls().size());
    EXPECT_NEAR(flops, CountFlops(program).executed, 1e-9 * flops);
  });
}

}  // namespace
}  // namespace ridgeline::engine
