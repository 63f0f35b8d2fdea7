// A run that is interrupted and continued matches the uninterrupted run to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/files.h"
#include "base/json.h"
#include "engine/train/manifest.h"
#include "engine/train/trainer.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ContinueTest : public ::testing::Test {
 protected:
  RunSpec Saving(const Json& values, int64_t every_steps = 100) {
    RunSpec spec = SpecFrom(values);
    spec.checkpoint_dir = dir_ / "ck";
    spec.checkpoint_every_steps = every_steps;
    return spec;
  }
  // Runs until `leave_after` steps of this process are done, or to the end.
  RunResult Run(const RunSpec& spec, int64_t leave_after = INT64_MAX) {
    int64_t steps = 0;
    notes_.clear();
    TrainOptions options;
    options.on_step = [&](const StepReport&) { ++steps; };
    options.on_note = [&](const std::string& note) { notes_ += note + "\n"; };
    options.told_to_leave = [&] { return steps >= leave_after; };
    return Train(spec, options).result;
  }
  std::vector<std::string> Steps() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_ / "ck")) {
      if (entry.path().filename().string().starts_with("step-")) names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  TempDir dir_;
  std::string notes_;
};

TEST_F(ContinueTest, TheLossSeriesIsTheSameToTheBit) {
  const fs::path text = dir_ / "text";
  {
    std::ofstream out(text);
    for (int i = 0; i < 200; ++i) out << "pack my box with five dozen liquor jugs " << i << "; ";
  }
  for (const auto& [family, numbers] : kFamiliesInNumbers) {
    Json values = TinyModel(family);
    numbers.AddTo(values);
    values.update({{"dropout", 0.1},
                   {"grad_clip", 0.5},
                   {"grad_accumulation", 2},
                   {"schedule", "cosine"},
                   {"lr_warmup_steps", 2},
                   {"learning_rate", 3e-3},
                   {"warmup_steps", 1},
                   {"steps", 8}});
    if (family == "llama") values.update({{"data", text.string()}, {"vocab", 256}});
    SCOPED_TRACE(values.dump());
    fs::remove_all(dir_ / "ck");
    const RunResult whole = Run(SpecFrom(values));
    ASSERT_EQ(whole.status, RunStatus::kOk) << whole.message;
    const RunSpec spec = Saving(values, 4);
    for (const int64_t steps : {3, 2}) {  // after step 3 and after step 5
      const RunResult part = Run(spec, steps);
      EXPECT_EQ(part.reason, InfrastructureReason::kPreempted);
      EXPECT_THAT(part.message, HasSubstr("saved in " + spec.checkpoint_dir));
    }
    const RunResult rest = Run(spec);
    ASSERT_EQ(rest.status, RunStatus::kOk) << rest.message;
    EXPECT_EQ(rest.loss, whole.loss);
    ASSERT_EQ(rest.grad_norm.size(), whole.grad_norm.size());
    for (size_t i = 0; i < rest.grad_norm.size(); ++i) {  // NaN if loss scaling skipped a step
      EXPECT_TRUE(rest.grad_norm[i] == whole.grad_norm[i] ||
                  (std::isnan(rest.grad_norm[i]) && std::isnan(whole.grad_norm[i])));
    }
    EXPECT_EQ(rest.step_ns.all_ns.size(), 9U);
    EXPECT_EQ(rest.evidence.at("resumed_from_step"), "5");
    EXPECT_EQ(rest.evidence.at("checkpoint_step"), "9");
    EXPECT_EQ(rest.point_id, whole.point_id);
  }
}

TEST_F(ContinueTest, SavingIsReportedApartFromTheSteps) {
  Json values = TinyModel("llama");
  values.update({{"warmup_steps", 1}, {"steps", 9}});
  const RunResult r = Run(Saving(values, 4));
  ASSERT_EQ(r.status, RunStatus::kOk) << r.message;
  EXPECT_THAT(Steps(), ElementsAre("step-00000008", "step-00000010"));
  EXPECT_EQ(r.evidence.at("checkpoint_saves"), "3");
  EXPECT_GT(std::stoll(r.evidence.at("checkpoint_save_ns")), 0);
  int64_t steps_ns = 0;
  for (const int64_t ns : r.step_ns.all_ns) steps_ns += ns;
  EXPECT_NEAR(r.throughput.cold_tokens_per_s, 10 * 74e9 / static_cast<double>(steps_ns), 1);
  EXPECT_LE(steps_ns + std::stoll(r.evidence.at("checkpoint_save_ns")), r.ended_unix_ns - r.started_unix_ns);
  EXPECT_FALSE(r.evidence.contains("resumed_from_step"));
}

TEST_F(ContinueTest, AFinishedRunHasNothingLeftToRun) {
  const Json values = TinyModel("gpt");
  const RunResult first = Run(Saving(values));
  const RunResult again = Run(Saving(values));
  EXPECT_EQ(again.status, RunStatus::kOk);
  EXPECT_EQ(again.loss, first.loss);
  EXPECT_EQ(again.step_ns.all_ns, first.step_ns.all_ns);
  EXPECT_EQ(again.step_ns.median_ns, first.step_ns.median_ns);
  EXPECT_EQ(again.evidence.at("resumed_from_step"), "7");
  // A longer run continues.
  Json longer = values;
  longer["steps"] = 7;
  const RunResult more = Run(Saving(longer));
  EXPECT_EQ(more.loss.size(), 9U);
  EXPECT_TRUE(std::equal(first.loss.begin(), first.loss.end(), more.loss.begin()));
  EXPECT_EQ(more.loss, Run(SpecFrom(longer)).loss);
}

TEST_F(ContinueTest, WithoutAFolderNothingIsSavedAndSaidSo) {
  const RunResult r = Run(SpecFrom(TinyModel("llama")), 3);
  EXPECT_EQ(r.reason, InfrastructureReason::kPreempted);
  EXPECT_EQ(r.loss.size(), 3U);
  EXPECT_THAT(r.message, HasSubstr("told to leave after step 3 of 7; nothing was saved"));
  EXPECT_GT(r.throughput.steady_tokens_per_s, 0);  // from the one step past the warm-up
  EXPECT_EQ(Run(SpecFrom(TinyModel("llama")), 0).loss.size(), 0U);
}

TEST_F(ContinueTest, ANamedStepIsContinuedOrTheReasonSaid) {
  Json values = TinyModel("llama");
  const RunResult whole = Run(Saving(values, 2));
  TrainOptions options;
  options.resume = dir_ / "ck/step-00000006";
  const RunResult from_six = Train(SpecFrom(values), options).result;
  EXPECT_EQ(from_six.loss, whole.loss);
  EXPECT_EQ(from_six.evidence.at("resumed_from_step"), "6");
  fs::resize_file(dir_ / "ck/step-00000006/optimizer-00001-of-00001.safetensors", 99);
  const RunResult damaged = Train(SpecFrom(values), options).result;
  EXPECT_EQ(damaged.status, RunStatus::kInvalid);
  EXPECT_THAT(damaged.message, HasSubstr("optimizer-00001-of-00001.safetensors has 99 bytes"));
  options.resume = dir_ / "nowhere";
  EXPECT_EQ(Train(SpecFrom(values), options).result.status, RunStatus::kInvalid);
}

TEST_F(ContinueTest, FilesOfAnotherModelAreRefusedAndKept) {
  Json values = TinyModel("llama");
  Run(Saving(values));
  values["hidden"] = 64;
  const RunResult r = Run(Saving(values));
  EXPECT_EQ(r.status, RunStatus::kInvalid);
  EXPECT_THAT(r.message, HasSubstr("of another shape"));
  EXPECT_THAT(Steps(), ElementsAre("step-00000007"));
}

TEST_F(ContinueTest, ADivergedRunKeepsItsFiniteSteps) {
  Json values = TinyModel("llama");
  values.update({{"learning_rate", 1e3}, {"steps", 50}, {"precision", "fp32"}, {"weight_decay", 100.0}});
  const RunResult r = Run(Saving(values, 1));
  ASSERT_EQ(r.status, RunStatus::kDiverged);
  const auto diverged_at = static_cast<int64_t>(r.loss.size());
  EXPECT_EQ(r.evidence.at("step"), std::to_string(diverged_at));
  EXPECT_THAT(r.message, HasSubstr("at step " + r.evidence.at("step")));
  ASSERT_FALSE(Steps().empty());
  const Manifest kept = ReadManifest(dir_ / "ck" / Steps().back());
  EXPECT_LT(kept.step, diverged_at);
  for (const double loss : kept.history.loss) EXPECT_TRUE(std::isfinite(loss));
  const RunResult again = Run(Saving(values, 1));  // it diverges again
  EXPECT_EQ(again.status, RunStatus::kDiverged);
  EXPECT_EQ(again.evidence.at("step"), r.evidence.at("step"));
}

TEST_F(ContinueTest, AFolderThatCannotBeWrittenIsTheStoragesFaultBeforeTheFirstStep) {
  WriteFileAtomic(dir_ / "ck", "a file");
  const RunResult r = Run(Saving(TinyModel("llama")));
  EXPECT_EQ(r.status, RunStatus::kInfrastructure);
  EXPECT_EQ(r.reason, InfrastructureReason::kStorage);
  EXPECT_THAT(r.message, HasSubstr((dir_ / "ck").string()));
  EXPECT_TRUE(r.loss.empty());
}

}  // namespace
}  // namespace ridgeline::engine
