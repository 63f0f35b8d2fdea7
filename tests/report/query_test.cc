// The results of the shipped report's query.sql: the figures that compare runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "report/rows.h"
#include "run/result.h"
#include "tests/base/temp_dir.h"
#include "tests/report/sample.h"

namespace ridgeline::report {
namespace {

using report_sample::FillSample;
using report_sample::Runs;
using report_sample::ShippedReport;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

class QuerySqlTest : public testing::Test {
 protected:
  Rows Answer() { return {report_, store_.Query(report_.sql)}; }

  // The row of a panel with this policy and batch.
  static size_t Find(const Rows& rows, std::string_view panel, std::string_view policy, int batch) {
    for (size_t row = 0; row < rows.size(); ++row) {
      if (rows.Text(row, "panel").starts_with(panel) && rows.Text(row, "checkpointing") == policy &&
          rows.Text(row, "batch_size") == std::to_string(batch)) {
        return row;
      }
    }
    ADD_FAILURE() << "no run " << panel << " " << policy << " " << batch;
    return 0;
  }

  TempDir dir_;
  store::Store store_ = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
  Report report_ = ShippedReport();
};

// In every report that compares runs by anything: a run on another card, or on none, is no neighbour.
TEST_F(QuerySqlTest, EachGpuHasAPanelOfItsOwn) {
  for (const auto& [name, other] :
       std::map<std::string, Json>{{"activation-checkpointing", {{"checkpointing", "full"}}},
                                   {"precision", {{"precision", "fp32"}}},
                                   {"scaling", {{"ranks", 2}}}}) {
    store::Store store = store::Store::Open(dir_ / (name + ".db"), store::Store::Mode::kReadWrite);
    Runs runs(store);
    for (const char* gpu : {"none", "h100", "h200"}) {
      Json spec = {{"model", "llama-25m"}, {"precision", "bf16"}, {"batch_size", 1}};
      if (std::string_view(gpu) != "none") spec.update({{"device", "cuda"}, {"gpu", gpu}});
      runs.Add(spec);
      spec.update(other);
      runs.Add(spec);
    }
    runs.Put("s");
    const Report report = ShippedReport(name);
    const Rows rows(report, store.Query(report.sql));
    std::map<std::string, size_t> of_card;
    for (const Panel& panel : MakePanels(rows)) {
      const size_t on = panel.title.find(", on ");
      of_card[on == std::string::npos ? "none" : panel.title.substr(on + 5)] += panel.rows.size();
    }
    EXPECT_EQ(of_card, (std::map<std::string, size_t>{{"none", 2}, {"h100", 2}, {"h200", 2}})) << name;
    EXPECT_EQ(MakePanels(rows).size(), 3U) << name;
  }
}

TEST_F(QuerySqlTest, ComparesWithNoCheckpointingAtTheSameBatch) {
  FillSample(store_);
  const Rows rows = Answer();
  const std::string panel = "llama-25m, bf16, sequence 512";
  const size_t full = Find(rows, panel, "full", 1);
  EXPECT_THAT(rows.Number(full, "recompute_overhead_percent"), Optional(DoubleNear(25, 1e-9)));
  // 595 MB planned without, 455 MB with.
  EXPECT_THAT(rows.Number(full, "memory_saved_percent"), Optional(DoubleNear(100.0 * 140 / 595, 1e-9)));
  const size_t none = Find(rows, panel, "none", 1);
  EXPECT_EQ(rows.Number(none, "recompute_overhead_percent"), std::nullopt);
  EXPECT_EQ(rows.Number(none, "memory_saved_percent"), std::nullopt);
}

TEST_F(QuerySqlTest, APlanThatDidNotFitIsStillComparedWith) {
  FillSample(store_);
  const Rows rows = Answer();
  const size_t full = Find(rows, "llama-25m, bf16", "full", 16);
  EXPECT_EQ(rows.Number(full, "recompute_overhead_percent"), std::nullopt);  // there is no run to compare with
  EXPECT_THAT(rows.Number(full, "memory_saved_percent"), Optional(DoubleNear(100.0 * (2995 - 755) / 2995, 1e-9)));
  EXPECT_EQ(rows.Number(Find(rows, "llama-25m, bf16", "full", 8), "memory_saved_percent"), std::nullopt);
  // A published peak is not a plan.
  EXPECT_EQ(rows.Number(Find(rows, "gpt-10m", "full", 1), "memory_saved_percent"), std::nullopt);
}

TEST_F(QuerySqlTest, SpeedUpIsOverTheSamePolicyAtItsSmallestBatch) {
  FillSample(store_);
  const Rows rows = Answer();
  const std::string panel = "llama-25m, bf16, sequence 512";
  EXPECT_THAT(rows.Number(Find(rows, panel, "none", 1), "speedup"), Optional(1.0));
  // Steps of 0.25 (1 + batch) s: 16 / 17 against 1 / 2.
  EXPECT_THAT(rows.Number(Find(rows, panel, "full", 16), "speedup"), Optional(DoubleNear(32.0 / 17, 1e-9)));
  EXPECT_THAT(rows.Number(Find(rows, panel, "full", 1), "speedup"), Optional(1.0));
  EXPECT_EQ(rows.Number(Find(rows, panel, "none", 16), "speedup"), std::nullopt);
}

TEST_F(QuerySqlTest, TheSameBatchWithOtherSettingsIsNoSpeedUp) {
  Runs runs(store_);
  for (const double rate : {1e-3, 1e-4}) runs.Add({{"model", "llama-10m"}, {"learning_rate", rate}});
  runs.Add({{"model", "llama-10m"}, {"seed", 7}});
  runs.Put("s");
  const Rows rows = Answer();
  ASSERT_EQ(rows.size(), 3U);
  for (size_t row = 0; row < rows.size(); ++row) EXPECT_EQ(rows.Number(row, "is_first"), 1) << row;
}

TEST_F(QuerySqlTest, NeverComparesFiguresOfDifferentProvenanceOrDevice) {
  Runs runs(store_);
  const auto spec = [](const char* policy) { return Json{{"model", "llama-10m"}, {"checkpointing", policy}}; };
  runs.Add(spec("none"));
  runs.Add(spec("full")).provenance = Provenance::kPredicted;
  runs.Add(spec("selective")).device = "another CPU";
  runs.Add(spec("full/2")).emulated = true;
  runs.Put("s");
  const Rows rows = Answer();
  for (const char* policy : {"full", "selective", "full/2"}) {
    const size_t row = Find(rows, "llama-10m", policy, 1);
    EXPECT_EQ(rows.Number(row, "recompute_overhead_percent"), std::nullopt) << policy;
    EXPECT_THAT(rows.Number(row, "speedup"), Optional(1.0)) << policy;
  }
}

TEST_F(QuerySqlTest, FailuresSayWhatTheyWanted) {
  FillSample(store_);
  const Rows rows = Answer();
  const size_t skipped = Find(rows, "llama-25m, bf16", "none", 16);
  EXPECT_EQ(rows.Text(skipped, "failure"), "predicted out of memory");
  EXPECT_THAT(rows.Number(skipped, "wanted_bytes"), Optional(2995e6));
  EXPECT_THAT(rows.Number(skipped, "available_bytes"), Optional(2000e6));
  const size_t killed = Find(rows, "llama-25m, fp32", "none", 8);
  EXPECT_EQ(rows.Text(killed, "failure"), "out of memory");
  EXPECT_THAT(rows.Number(killed, "wanted_bytes"), Optional(1800e6));
  const size_t crashed = Find(rows, "llama-25m, fp32", "full", 8);
  EXPECT_EQ(rows.Text(crashed, "failure"), "crashed");
  EXPECT_EQ(rows.Number(crashed, "wanted_bytes"), std::nullopt);
}

TEST_F(QuerySqlTest, EveryEndIsEitherOkOrHasWords) {
  Runs runs(store_);
  int seed = 0;
  for (const std::string& name : StatusNames()) {
    const RunEnd end = name == "infrastructure" ? RunEnd(InfrastructureReason::kNode) : RunEnd(StatusFromName(name));
    runs.Add({{"model", "llama-10m"}, {"seed", ++seed}}, end);
  }
  runs.Put("s");
  const Rows rows = Answer();
  ASSERT_EQ(rows.size(), StatusNames().size());
  size_t failed = 0;
  for (size_t row = 0; row < rows.size(); ++row) failed += rows.Failed(row) ? 1 : 0;
  EXPECT_EQ(failed, rows.size() - 1);
}

TEST_F(QuerySqlTest, ADifferentWorkOfAStepIsAnotherPanel) {
  Runs runs(store_);
  const Json base = {{"model", "llama-10m"}};
  for (const Json& change : {Json::object(), Json{{"precision", "fp32"}}, Json{{"state_precision", "bf16"}},
                             Json{{"seq_length", 64}}, Json{{"grad_accumulation", 2}}, Json{{"dropout", 0.5}},
                             Json{{"optimizer", "adam"}}, Json{{"ranks", 2}, {"communicator", "virtual"}},
                             Json{{"ranks", 2}, {"communicator", "virtual"}, {"shard", "full"}},
                             Json{{"device", "meta"}}, Json{{"layers", 3}}, Json{{"layers", 3}, {"ffn", 64}}}) {
    Json spec = base;
    spec.update(change);
    runs.Add(spec);
  }
  runs.Add({{"model", "llama-10m"}, {"batch_size", 2}});
  runs.Add({{"model", "llama-10m"}, {"seed", 7}});
  runs.Put("s");
  EXPECT_EQ(MakePanels(Answer()).size(), 12U);
}

TEST_F(QuerySqlTest, PoliciesStandInOrderOfWhatTheyRecompute) {
  Runs runs(store_);
  for (const char* policy : {"full/4", "full", "selective", "full/2", "none"}) {
    runs.Add({{"model", "llama-10m"}, {"checkpointing", policy}});
  }
  runs.Put("s");
  const Rows rows = Answer();
  std::vector<std::string> policies;
  for (size_t row = 0; row < rows.size(); ++row) policies.push_back(rows.Text(row, "checkpointing"));
  EXPECT_THAT(policies, ElementsAre("none", "selective", "full", "full/2", "full/4"));
}

TEST_F(QuerySqlTest, TheConclusionSaysWhatTheRunsSay) {
  FillSample(store_);
  const Rows rows = Answer();
  std::map<std::string, std::string> said;
  for (const Panel& panel : MakePanels(rows)) {
    for (const std::string& sentence : Conclude(report_, rows, panel.rows)) said[panel.title] += sentence + "\n";
  }
  const std::string& bf16 = said["llama-25m, bf16, sequence 512"];
  EXPECT_THAT(bf16, HasSubstr("With full activation checkpointing, batch 16 gives 1.88\xC2\xA0\xC3\x97 the steady"));
  EXPECT_THAT(bf16, HasSubstr("the steady throughput of batch 1.\n"));
  EXPECT_THAT(bf16, HasSubstr(": 1.54K tokens/s against 819"));
  EXPECT_THAT(bf16, HasSubstr("in 755 MB of planned memory against 455 MB."));
  EXPECT_THAT(bf16, HasSubstr("At batch 1, full activation checkpointing changes the step time by +25.0"));
  EXPECT_THAT(bf16, HasSubstr("Out of memory: no activation checkpointing at batch 16 needs"));
  EXPECT_THAT(bf16, HasSubstr("3.00 GB (predicted)."));
  EXPECT_EQ(said["llama-25m, fp32, sequence 512"],
            "With no activation checkpointing, batch 1 takes 595 MB of planned memory.\n"
            "Out of memory: no activation checkpointing at batch 8 needs 1.80 GB.\n");
  EXPECT_EQ(said["gpt-10m, bf16, sequence 512"],
            "With no activation checkpointing, batch 1 takes 595 MB of planned memory (predicted).\n");
}

// No checkpointing and full, at batch 1, with steps of one second; `slower`: how much longer full's steps take.
class NoiseTest : public QuerySqlTest {
 protected:
  std::string Conclusion(double slower) {
    Runs runs(store_);
    for (const char* policy : {"none", "full"}) {
      RunResult& run = runs.Add({{"model", "llama-10m"}, {"checkpointing", policy}, {"steps", 5}, {"repeats", 3}});
      const double factor = std::string(policy) == "full" ? slower : 1;
      run.step_ns.all_ns = {2'000'000'000, 1'500'000'000};
      for (const double noise :
           {1.00, 1.02, 0.98, 1.01, 0.99, 1.03, 1.00, 1.04, 0.99, 1.01, 0.97, 1.00, 0.98, 1.01, 0.96}) {
        run.step_ns.all_ns.push_back(static_cast<int64_t>(1e9 * factor * noise));
      }
      run.step_ns.median_ns = static_cast<int64_t>(1e9 * factor);
    }
    runs.Put("s");
    const Rows rows = Answer();
    std::string said;
    for (const Panel& panel : MakePanels(rows)) {
      for (const std::string& sentence : Conclude(report_, rows, panel.rows)) said += sentence + "\n";
    }
    return said;
  }
};

TEST_F(NoiseTest, AChangeBeyondTheNoiseIsSaidWithItsInterval) {
  EXPECT_THAT(Conclusion(1.25), HasSubstr("full activation checkpointing changes the step time by +25.0\xC2\xA0% (+"));
}

TEST_F(NoiseTest, AChangeWithinItIsNoHeadline) {
  const std::string said = Conclusion(1.01);
  EXPECT_THAT(said,
              testing::ContainsRegex("\nAt batch 1, no difference larger than [0-9.]+.*% was measured between the "
                                     "step times of full and of no activation checkpointing; [0-9]+ more repeats "
                                     "would show [0-9.]+"));
  EXPECT_THAT(said, testing::Not(HasSubstr("changes the step time")));
}

TEST_F(NoiseTest, RecomputingFasterThanNotIsADisturbedRun) {
  const std::string said = Conclusion(0.64);
  EXPECT_THAT(said, HasSubstr("A run was disturbed: with full activation checkpointing at batch 1, step time changed "
                              "by \xE2\x88\x92"
                              "36.0"));
  EXPECT_THAT(said, testing::Not(HasSubstr("no difference")));
}

}  // namespace
}  // namespace ridgeline::report
