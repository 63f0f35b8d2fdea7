// The step model on small devices whose figures are round, so that each term can be computed by hand.
#include "predict/step_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline::predict {
namespace {
namespace fs = std::filesystem;
using ::testing::HasSubstr;

Device Shipped(const std::string& name) { return FindDevice(name, {fs::path(RIDGELINE_SOURCE_DIR) / "devices"}); }

RunSpec SpecOf(const std::string& fields) {
  return sweep::Expand(sweep::ParseSweep("name: test\ndefaults: {" + fields + "}", "s.yaml"))[0].spec;
}

StepForecast ForecastOf(const std::string& fields, const std::string& device) {
  const Device on = Shipped(device);
  return Forecast(CostsOf(SpecOf(fields), on), on);
}

TEST(TileShare, IsWhatWavesAndEdgesLeave) {
  constexpr int64_t kProcessors = 100;
  const double deep = TileShare(256 * 10, 128 * 10, 1 << 20, kProcessors);
  EXPECT_NEAR(deep, 1, 1e-3) << "one full wave, and so many terms that a tile's ends are nothing";
  EXPECT_LT(TileShare(256 * 10, 128 * 10 + 1, 1 << 20, kProcessors), 0.96) << "a wave that is nearly empty";
  EXPECT_LT(TileShare(256 * 10, 128 * 10, 64, kProcessors), 0.5) << "few terms";
  EXPECT_GT(TileShare(256 * 100, 128 * 100, 1 << 20, kProcessors), 0.99);
  EXPECT_GT(TileShare(128, 128, 1 << 20, kProcessors), 2.5 / 100) << "sums are cut into parts";
  EXPECT_LT(TileShare(1, 4096, 4096, kProcessors), 0.02);
}

TEST(CollectiveSeconds, AreLatencyAndTheSlowerOfTheHierarchy) {
  const Device p5 = Shipped("p5");
  const Efficiency all = {.link = 1, .network = 1};
  EXPECT_EQ(CollectiveSeconds(1e9, false, {1}, p5, all), 0);
  // Eight in one domain: seven hops of 3.4 us, and 1 GB over 450 GB/s.
  EXPECT_NEAR(CollectiveSeconds(1e9, false, {8}, p5, all), 8.4e-6 + 7 * 3.4e-6 + 1e9 / 450e9, 1e-9);
  // With almost no data, the protocol with the quickest start and hops is used.
  EXPECT_NEAR(CollectiveSeconds(0, true, {8}, p5, all), 6.6e-6 + 14 * 0.18 * 3.4e-6, 1e-9) << "there and back";
  // Two machines: 8 of 15 parts come over 400 GB/s. That takes longer than all parts over a link at 450.
  const double two = CollectiveSeconds(15e9, false, {16}, p5, all);
  EXPECT_NEAR(two, 8.4e-6 + 14 * 3.4e-6 + 14e-6 + std::max(8e9 / 400e9, 15e9 / 450e9), 1e-9);
  const double many = CollectiveSeconds(127e9, false, {128}, p5, all);
  EXPECT_NEAR(many, 8.4e-6 + 112 * 3.4e-6 + 15 * 14e-6 + 120e9 / 400e9, 1e-9) << "the network is the slower";
  EXPECT_LT(CollectiveSeconds(15e9, false, {16}, Shipped("p6e-gb200"), all), two) << "one domain of 72";
  // Two ranks, each on its own machine, and seven other such pairs at the same time.
  EXPECT_NEAR(CollectiveSeconds(1e9, true, {2, 8}, p5, all), 8 * 1e9 / 400e9, 1e-3);
  EXPECT_LT(CollectiveSeconds(1e9, true, {2, 4}, p5, all), 0.003) << "on one machine";
}

TEST(CollectiveSeconds, AskForALinkAndANetwork) {
  try {
    CollectiveSeconds(1, false, {16}, Shipped("h100"), {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_THAT(e.message(),
                HasSubstr("h100 is a single GPU, without a network. Links join 8 of its GPUs, and there are 16 ranks"));
  }
  Device alone = Shipped("h100");
  std::erase_if(alone.figures, [](const auto& figure) { return figure.first.starts_with("link."); });
  EXPECT_THROW(CollectiveSeconds(1, false, {2}, alone, {}), Error);
}

constexpr const char* kModel = "model: llama-1b, seq_length: 2048, batch_size: 4";

TEST(Forecast, SharesSumToTheStep) {
  for (const char* fields :
       {"precision: bf16", "precision: fp8, checkpointing: full", "precision: bf16, ranks: 16, shard: full",
        "precision: mxfp8, ranks: 8, shard: optimizer", "precision: fp32, ranks: 8, shard: none, grad_clip: 1"}) {
    for (const char* device : {"p5", "p6-b200", "p4de"}) {
      const StepForecast forecast = ForecastOf(std::string(kModel) + ", " + fields, device);
      EXPECT_NEAR(
          (forecast.compute_ns + forecast.memory_ns + forecast.exposed_ns + forecast.launch_ns) / forecast.step_ns, 1,
          1e-9)
          << fields << " on " << device;
      double lines_ns = 0;
      for (const ForecastLine& line : forecast.lines) lines_ns += line.ns;
      EXPECT_NEAR(lines_ns / forecast.step_ns, 1, 1e-9);
      if (const auto interval = forecast.interval()) {
        EXPECT_LT(interval->low_ns, forecast.step_ns);
        EXPECT_GT(interval->high_ns, forecast.step_ns);
      }
      EXPECT_LE(forecast.exposed_ns - forecast.straggle_ns, forecast.communication_ns + 1);
      EXPECT_FALSE(forecast.calibrated);
    }
  }
}

TEST(Forecast, CountsWhatIsComputedAgain) {
  const StepForecast none = ForecastOf(kModel, "h100");
  const StepForecast full = ForecastOf(std::string(kModel) + ", checkpointing: full", "h100");
  EXPECT_GT(full.step_ns, 1.15 * none.step_ns) << "a third of the forward and backward pass, less what is no layer";
  EXPECT_LT(full.step_ns, 1.40 * none.step_ns);
}

TEST(Forecast, EmulatedFormatsCostWhatEmulationCosts) {
  const auto step = [](const char* precision, const char* device) {
    return ForecastOf(fmt::format("{}, precision: {}", kModel, precision), device).step_ns;
  };
  EXPECT_GT(step("mxfp8", "h100"), step("bf16", "h100")) << "decoded, and multiplied in 16 bits";
  EXPECT_LT(step("fp8", "h100"), step("bf16", "h100"));
  EXPECT_GT(step("fp8", "a100"), step("bf16", "a100"));
  EXPECT_LT(step("mxfp8", "b200"), step("bf16", "b200"));
  for (const char* device : {"a100", "h100", "b200"}) {
    EXPECT_LT(step("tf32", device), step("fp32", device)) << device << " has tensor cores for it";
    EXPECT_GT(step("tf32", device), step("bf16", device)) << device;
  }
}

TEST(Forecast, CommunicationHidesBehindWhatIsComputed) {
  const std::string large = "model: llama-8b, seq_length: 8192, batch_size: 2, precision: bf16, shard: full, ranks: ";
  const StepForecast hidden = ForecastOf(large + "8", "p5");
  EXPECT_GT(hidden.communication_ns, 0);
  EXPECT_LT(hidden.exposed_ns - hidden.straggle_ns, 0.2 * hidden.communication_ns);
  const StepForecast exposed =
      ForecastOf("model: llama-8b, seq_length: 128, batch_size: 1, precision: bf16, shard: full, ranks: 64", "p4de");
  EXPECT_EQ(exposed.bound, "communication") << "nothing to hide behind, and 400 Gbit/s";
  EXPECT_EQ(ForecastOf(kModel, "p5").communication_ns, 0);
}

TEST(Forecast, SaysWhatBoundsIt) {
  EXPECT_EQ(ForecastOf("model: llama-8b, seq_length: 8192, batch_size: 1", "h100").bound, "compute");
  EXPECT_EQ(ForecastOf("model: llama-10m, seq_length: 16, batch_size: 1, steps: 1", "b200").bound, "launches");
}

// A typed share may be wrong: no step was compared with it.
TEST(Forecast, SharesThatAFileSaysAreNoCalibration) {
  Device device = Shipped("h100");
  for (const char* figure : {"products", "products_fp8", "attention", "memory"}) {
    device.figures[std::string("efficiency.") + figure] = {0.5, "measured", "", ""};
  }
  const RunSpec spec = SpecOf(kModel);
  const StepForecast forecast = Forecast(CostsOf(spec, device), device);
  EXPECT_FALSE(forecast.calibrated);
  EXPECT_EQ(forecast.spread, ForecastOf(kModel, "h100").spread);
  EXPECT_GT(forecast.step_ns, ForecastOf(kModel, "h100").step_ns);
}

// A step that is like no row has no interval, not an interval of zero width.
TEST(Forecast, AStepThatNoRowIsLikeHasNoInterval) {
  const auto has = [](const std::string& fields, const char* device) {
    const StepForecast step = ForecastOf(fields, device);
    EXPECT_EQ(step.interval().has_value(), step.spread.has_value());
    if (step.spread) {
      EXPECT_GT(*step.spread, 1) << fields << " on " << device;
    }
    return step.spread.has_value();
  };
  const std::string model = kModel;
  EXPECT_TRUE(has(model + ", precision: bf16", "b200"));
  EXPECT_TRUE(has(model + ", precision: mxfp8", "b200"));
  EXPECT_FALSE(has(model + ", precision: nvfp4", "b200"));
  EXPECT_FALSE(has(model + ", precision: fp32", "h100"));
  EXPECT_FALSE(has(model + ", precision: tf32", "h100"));
  EXPECT_FALSE(has(model + ", precision: fp8", "a100")) << "emulated";
  EXPECT_TRUE(has(model + ", precision: bf16, ranks: 8", "p5"));
  EXPECT_FALSE(has(model + ", precision: bf16, ranks: 8, tensor_parallel: 2", "p5"));
  const std::string small = "model: llama-10m, seq_length: 128, batch_size: 1";
  EXPECT_EQ(ForecastOf(small, "b200").bound, "launches");
  EXPECT_FALSE(has(small, "b200"));
}

TEST(Forecast, PowerHoldsClocksDown) {
  const StepForecast full = ForecastOf(kModel, "h100");
  const StepForecast held = ForecastOf(kModel, "h100-hbm2e");
  EXPECT_GT(held.compute_ns, 1.05 * full.compute_ns);
}

TEST(PredictStep, AFewTracedLayersGiveTheStepOfAllLayers) {
  for (const char* fields :
       {"model: llama-8b, precision: bf16",
        "model: llama-8b, precision: fp8, ranks: 8, shard: full, checkpointing: full",
        "model: llama-8b, precision: fp8, scaling: delayed, ranks: 16, shard: optimizer, grad_accumulation: 7",
        "model: stack-3b, precision: mxfp8, ranks: 32, shard: full, checkpointing: full/3, batch_size: 2",
        "model: gpt-3b, precision: bf16, ranks: 64, shard: full, seq_length: 128, grad_clip: 1",
        "model: llama-3b, precision: nvfp4, bf16_first_layers: 2, bf16_last_layers: 3, checkpointing: selective",
        "model: llama-8b, precision: bf16, ranks: 16, tensor_parallel: 8, shard: full, grad_clip: 1",
        "model: llama-8b, precision: fp8, scaling: delayed, ranks: 8, tensor_parallel: 2, shard: optimizer, "
        "grad_accumulation: 5, checkpointing: full",
        "model: gpt-3b, precision: bf16, ranks: 4, tensor_parallel: 4, sequence_parallel: false",
        "model: llama-10m, ranks: 8, shard: none, grad_accumulation: 5"}) {
    for (const char* name : {"p5", "p6-b200", "p4de"}) {
      const RunSpec spec = SpecOf(fields);
      const Device device = Shipped(name);
      const StepForecast whole = Forecast(CostsOf(spec, device), device);
      const StepForecast folded = PredictStep(spec, device);
      const std::string what = fmt::format("{} on {}", fields, name);
      EXPECT_NEAR(folded.step_ns / whole.step_ns, 1, 0.005) << what;
      EXPECT_NEAR(folded.compute_ns / whole.step_ns, whole.compute_ns / whole.step_ns, 0.005) << what;
      EXPECT_NEAR(folded.memory_ns / whole.step_ns, whole.memory_ns / whole.step_ns, 0.005) << what;
      EXPECT_NEAR(folded.exposed_ns / whole.step_ns, whole.exposed_ns / whole.step_ns, 0.005) << what;
      EXPECT_EQ(folded.lines.size(), whole.lines.size()) << what;
      int64_t calls = 0;
      for (const ForecastLine& line : whole.lines) calls += line.calls;
      for (const ForecastLine& line : folded.lines) calls -= line.calls;
      EXPECT_EQ(calls, 0) << what;
    }
  }
}

// This engine spares storing the gradient of SwiGLU and reading it again. The steps that shares were fitted to did not.
TEST(Forecast, OtherFrameworksQuantizeTheGradientOfSwiGluInASeparatePass) {
  const Device device = Shipped("h200");
  const auto step_ns = [&](const std::string& fields, bool apart) {
    Framework framework;
    framework.quantizes_apart = apart;
    return PredictStep(SpecOf("model: llama-8b, seq_length: 8192, state_precision: bf16, " + fields), device, framework)
        .step_ns;
  };
  EXPECT_NEAR(step_ns("precision: fp8", true) / step_ns("precision: fp8", false), 1.015, 0.004);
  EXPECT_NEAR(step_ns("precision: mxfp8", true) / step_ns("precision: mxfp8", false), 1.009, 0.004);
  EXPECT_EQ(step_ns("precision: bf16", true), step_ns("precision: bf16", false));
  EXPECT_TRUE(FindFramework("megatron", {fs::path(RIDGELINE_SOURCE_DIR) / "frameworks"}).quantizes_apart);
}

TEST(Forecast, AFormatWithoutAPeakIsAnError) {
  for (const std::string format : {"fp8", "tf32"}) {
    Device device = Shipped("h100");
    device.figures.erase("peaks." + format);
    const RunSpec spec = SpecOf(std::string(kModel) + ", precision: " + format);
    try {
      Forecast(CostsOf(spec, device), device);
      FAIL();
    } catch (const Error& e) {
      EXPECT_THAT(e.message(), HasSubstr("h100.yaml says nothing of peaks." + format));
    }
  }
}

}  // namespace
}  // namespace ridgeline::predict
