// Runs that correct what is predicted of others.
#include "predict/known_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "tests/predict/published.h"

namespace ridgeline::predict {
namespace {
using ::testing::HasSubstr;

const std::filesystem::path kFiles = RIDGELINE_SOURCE_DIR;

Device H100() { return FindDevice("dgx-h100", {kFiles / "devices"}); }

RunSpec SpecOfRun(const std::string& more) {
  return SpecOfFields("model: llama-8b, seq_length: 4096, ranks: 8, shard: full, " + more);
}

double StepNs(const Framework& framework, const RunSpec& spec, const Device& device) {
  const auto [priced, as] = AsPriced(framework, spec);
  return PredictStep(priced, device, as).step_ns;
}

TEST(KnownRuns, OneRunCorrectsTheOthersByMostOfItsFactor) {
  const Device device = H100();
  Framework framework = FindFramework("torchtitan", {kFiles / "frameworks"});
  const RunSpec ran = SpecOfRun("batch_size: 1");
  const RunSpec other = SpecOfRun("batch_size: 2, precision: fp8");
  const double before_ns = StepNs(framework, other, device);
  EXPECT_TRUE(Correct(framework, device, {{ran, "h100", 1.331 * StepNs(framework, ran, device), false, "a.log"}}));
  EXPECT_NEAR(StepNs(framework, other, device) / before_ns, 1.21, 0.001) << "1.331^(1 / 1.5)";
  EXPECT_EQ(framework.Basis("h100"),
            "estimated as torchtitan: time corrected x 1.210 by 1 run (a.log), memory assumed");
  // The interval is the run's where the run was, and wider elsewhere, until it is that of no run at all.
  const StepSize here = SizeOfStep(ran);
  EXPECT_NEAR(framework.Spread("h100", here), kSpreadOfOneRun, 1e-9);
  const auto spread = [&](const std::string& more) {
    return framework.Spread("h100", SizeOfStep(SpecOfFields("model: llama-8b, shard: full, " + more)));
  };
  EXPECT_GT(spread("seq_length: 4096, ranks: 32"), kSpreadOfOneRun);
  EXPECT_GT(spread("seq_length: 8192, ranks: 8"), spread("seq_length: 4096, ranks: 16"));
  framework.correction.reset();
  EXPECT_GE(framework.Spread("h100", here), kSpreadOfOneRun);
}

TEST(KnownRuns, TheIntervalGoesByTheWholeStepAndNotByItsTracedLayers) {
  const RunSpec spec = SpecOfFields("model: llama-1b, seq_length: 8192, precision: bf16");
  EXPECT_NEAR(PredictStep(spec, H100(), Framework()).spread.value_or(0), kSpreadOfGpu, 1e-9);
}

TEST(KnownRuns, AssumesWhatSomebodyTyped) {
  const Device device = H100();
  Framework framework = FindFramework("llm-foundry", {kFiles / "frameworks"});
  const RunSpec ran = SpecOfFields("model: gpt-1b, ranks: 8, shard: full");
  EXPECT_TRUE(Correct(framework, device, {{ran, "h100", 2e9, true, "typed"}}));
  EXPECT_THAT(framework.Basis("h100"), HasSubstr("by 1 run (typed), assumed"));
}

TEST(KnownRuns, OnAnotherGpuOrOutsideAFrameworkTeachNothing) {
  const Device device = H100();
  Framework framework = FindFramework("llm-foundry", {kFiles / "frameworks"});
  EXPECT_FALSE(Correct(framework, device,
                       {{SpecOfFields("model: gpt-1b, ranks: 8, shard: full"), "b200", 1e9, false, "x"},
                        {SpecOfRun("batch_size: 1"), "h100", 1e9, false, "x"}}));
  EXPECT_FALSE(framework.correction);
}

// Steps of products and steps of attention are off by different factors, which one factor cannot correct.
TEST(KnownRuns, SeveralTeachShares) {
  const Device device = H100();
  Framework truth;
  truth.efficiency.products = 0.6;
  truth.efficiency.attention = 0.3;
  std::vector<KnownRun> runs;
  for (const int seq_length : {512, 2048, 8192, 16384, 32768}) {
    const RunSpec spec = SpecOfFields(fmt::format("model: llama-1b, seq_length: {}", seq_length));
    runs.push_back({spec, "h100", StepNs(truth, spec, device), false, "runs.db"});
  }
  Framework framework;
  size_t tried = 0;
  ASSERT_TRUE(Correct(framework, device, runs, [&tried] { ++tried; }));
  EXPECT_GT(tried, 100) << "each try is told, so that a caller can show progress";
  EXPECT_TRUE(framework.correction->shares);
  EXPECT_EQ(framework.correction->factor, 1);
  EXPECT_LT(*framework.correction->error, 0.05);
  EXPECT_NEAR(framework.efficiency.products, 0.6, 0.05);
  EXPECT_NEAR(framework.efficiency.attention, 0.3, 0.05);
  EXPECT_THAT(framework.Basis("h100"), HasSubstr("shares learnt from 5 runs (runs.db), each from the others ±"));
}

TEST(KnownRuns, ALineIsReadAsItWasWritten) {
  const KnownRun run = {SpecOfRun("batch_size: 3"), "h100", 1.5e9, false, "train.log"};
  const KnownRun read = DecodeKnownRun(EncodeKnownRun(run), "f:1");
  EXPECT_EQ(read.spec.batch_size, 3);
  EXPECT_EQ(read.gpu, "h100");
  EXPECT_EQ(read.step_ns, 1.5e9);
  EXPECT_EQ(read.from, "train.log");
  for (const char* line : {"{}", "[]", "nothing", R"({"version":1,"gpu":"h1000","step_ns":1e9,"from":"x","spec":{}})",
                           R"({"version":1,"gpu":"h100","step_ns":-1,"from":"x","spec":{}})"}) {
    EXPECT_THROW(DecodeKnownRun(line, "f:1"), Error) << line;
  }
}

TEST(KnownRuns, AWrongLineIsExplainedInOurWords) {
  try {
    DecodeKnownRun(R"({"version":1,"gpu":"h100","from":"x","spec":{}})", "f:1");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "f:1: no known run: 'step_ns' is missing");
  }
}

}  // namespace
}  // namespace ridgeline::predict
