// The answer of a page: for every shipped report, whatever its runs were, one short sentence that they support.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "report/rows.h"
#include "tests/base/temp_dir.h"
#include "tests/report/readable.h"
#include "tests/report/sample.h"

namespace ridgeline::report {
namespace {

using report_sample::Runs;
using report_sample::ShippedReport;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A report, and the difference of its runs: a base and another run, whose steps do this much more work.
struct Compared {
  const char* report;
  Json base;
  Json other;
  double work = 1;
};

const std::vector<Compared> kCompared = {
    {"activation-checkpointing", {{"checkpointing", "none"}}, {{"checkpointing", "full"}}},
    {"activation-checkpointing", {{"checkpointing", "none"}}, {{"checkpointing", "selective"}}},
    {"activation-checkpointing", {{"batch_size", 1}}, {{"batch_size", 8}}, 8},
    {"precision", {{"precision", "bf16"}}, {{"precision", "fp32"}}},
    {"precision",
     {{"precision", "bf16"}},
     {{"precision", "fp8"}, {"state_precision", "bf16"}, {"primary_weights", "quantized"}}},
    {"scaling", {{"ranks", 1}}, {{"ranks", 2}, {"shard", "full"}}},
    {"scaling", {{"ranks", 2}}, {{"ranks", 4}, {"shard", "optimizer"}}},
    {"parallelism", {{"ranks", 2}}, {{"ranks", 2}, {"tensor_parallel", 2}, {"batch_size", 2}}, 2},
};

class Answers : public ::testing::Test {
 protected:
  // Two runs with equally many measured steps. The second's steps take the given multiple of the time. Neither counts
  // as run if they are predicted.
  std::vector<std::string> Of(
      const Compared& compared, int64_t steps, double slower, RunStatus status = RunStatus::kOk,
      Provenance provenance = Provenance::kMeasured, const std::function<void(RunResult&)>& edit = [](RunResult&) {}) {
    const TempDir dir;
    store::Store store = store::Store::Open(dir / "ridgeline.db", store::Store::Mode::kReadWrite);
    Runs runs(store);
    for (const Json& spec : {compared.base, compared.other}) {
      Json whole = {{"model", "llama-10m"}, {"warmup_steps", 1}, {"steps", steps}};
      whole.update(spec);
      RunResult& run = runs.Add(whole, status);
      run.evidence["wanted_bytes"] = "5000000000";
      run.provenance = provenance;
      if (status != RunStatus::kOk) continue;
      const double factor = spec == compared.other ? compared.work * slower : 1;
      run.step_ns.all_ns = {2'000'000'000};
      for (int64_t i = 0; i < steps; ++i) {
        run.step_ns.all_ns.push_back(
            static_cast<int64_t>(1e9 * factor * (1 + 0.01 * static_cast<double>(i * 7 % 5 - 2))));
      }
      run.step_ns.median_ns = static_cast<int64_t>(1e9 * factor);
      run.throughput.steady_tokens_per_s = static_cast<double>(run.tokens_per_step) / factor;
      if (provenance != Provenance::kMeasured) run.step_ns.all_ns.clear();
      edit(run);
    }
    runs.Put("s");
    const Report report = ShippedReport(compared.report);
    Rows rows(report, store.Query(report.sql));
    const std::vector<Panel> panels = MakePanels(rows);
    EXPECT_EQ(panels.size(), 1U) << compared.report;
    return panels.empty() ? std::vector<std::string>() : Conclude(report, rows, panels[0].rows);
  }
  static void ExpectShort(const std::vector<std::string>& said) {
    ASSERT_FALSE(said.empty());
    EXPECT_LE(Words(said[0]), 20U) << said[0];
  }
};

TEST_F(Answers, AreShortWhateverTheRunsWere) {
  for (const Compared& compared : kCompared) {
    SCOPED_TRACE(compared.report);
    for (const int64_t steps : {2, 9}) {
      for (const double slower : {0.5, 0.98, 1.0, 1.3, 4.0}) ExpectShort(Of(compared, steps, slower));
    }
    for (const RunStatus status : {RunStatus::kOomHost, RunStatus::kSkippedPredictedOom, RunStatus::kCrashed}) {
      ExpectShort(Of(compared, 9, 1, status));
    }
    ExpectShort(Of(compared, 9, 1.3, RunStatus::kOk, Provenance::kPredicted));
  }
}

TEST_F(Answers, SayADifferenceOnlyWhereThereIsOne) {
  for (const Compared& compared : kCompared) {
    SCOPED_TRACE(compared.report);
    // For scaling, twice the ranks in the same time is twice the work.
    EXPECT_THAT(Of(compared, 9, 1.3)[0], Not(HasSubstr("difference")));
    EXPECT_THAT(Of(compared, 9, 1.003)[0], HasSubstr("difference"));
  }
}

TEST_F(Answers, WithTooFewStepsAreAboutMemoryAlone) {
  for (const Compared& compared : kCompared) {
    SCOPED_TRACE(compared.report);
    const std::vector<std::string> said = Of(compared, 2, 3);
    EXPECT_THAT(said.at(0), HasSubstr("planned memory"));
    EXPECT_THAT(said.back(), StartsWith("Step times of runs with fewer than four measured steps are not compared"));
  }
}

// As from a user's own trainer, which plans no memory.
TEST_F(Answers, WithoutAPlanAreOfWhatWasMeasured) {
  for (const bool device : {true, false}) {
    const auto unplanned = [&](RunResult& run) {
      run.memory = {};
      if (device) run.memory.device_peak_bytes = 10'000'000 / run.tokens_per_step * 1000;
    };
    for (const Compared& compared : kCompared) {
      SCOPED_TRACE(std::string(compared.report) + (device ? ", with the device's memory" : ""));
      for (const int64_t steps : {2, 9}) {
        for (const double slower : {0.98, 1.0, 1.3}) {
          const auto said = Of(compared, steps, slower, RunStatus::kOk, Provenance::kMeasured, unplanned);
          ExpectShort(said);
          EXPECT_THAT(said, Each(Not(HasSubstr(device ? "planned" : "memory"))));
        }
      }
    }
  }
  const auto half = [](RunResult& run) {
    run.memory = {};
    run.memory.device_peak_bytes = run.step_ns.median_ns > 1'000'000'000 ? 4'000'000 : 8'000'000;
  };
  const auto said = [&](const Compared& compared) {
    return Of(compared, 9, 1.3, RunStatus::kOk, Provenance::kMeasured, half);
  };
  EXPECT_THAT(said(kCompared[0])[0], EndsWith("and saves 50.0\xC2\xA0% of memory."));
  EXPECT_THAT(said(kCompared[0])[1], EndsWith("and saves 50.0\xC2\xA0% of the measured memory."));
  EXPECT_THAT(said(kCompared[3])[0], EndsWith("and takes 50.0\xC2\xA0% less measured memory."));
}

TEST_F(Answers, AnImpossibleSpeedIsADisturbedRun) {
  const std::vector<std::string> said = Of(kCompared[0], 9, 0.6);
  EXPECT_THAT(said.at(0), StartsWith("A run was disturbed: with full activation checkpointing"));
  EXPECT_THAT(said.at(1), HasSubstr("Measure again on a quiet machine"));
}

TEST_F(Answers, SayThatAGpuWasDisturbed) {
  const auto disturbed = [](RunResult& run) {
    run.gpu.throttled_share = 0.25;
    run.gpu.others = 2;
  };
  for (const Compared& compared : kCompared) {
    EXPECT_THAT(Of(compared, 9, 1.3, RunStatus::kOk, Provenance::kMeasured, disturbed),
                AllOf(Contains(HasSubstr("A GPU was throttled in 25.0\xC2\xA0% of the measured steps of ")),
                      Contains(HasSubstr("A GPU was shared: "))))
        << compared.report;
  }
}

TEST_F(Answers, WithoutAnyRunThatEndedWellSaySo) {
  for (const Compared& compared : kCompared) {
    EXPECT_THAT(Of(compared, 9, 1, RunStatus::kCrashed).at(0), StartsWith("No run succeeded")) << compared.report;
  }
}

// Two runs of each comparison, of whose cores others used this share, of one run's or of both; as a report in this
// format.
std::string Disturbed(const Compared& compared, double share, ReportFormat format, bool both = false) {
  const TempDir dir;
  store::Store store = store::Store::Open(dir / "ridgeline.db", store::Store::Mode::kReadWrite);
  Runs runs(store);
  for (const Json& spec : {compared.base, compared.other}) {
    Json whole = {{"model", "llama-10m"}, {"warmup_steps", 2}, {"steps", 5}};
    whole.update(spec);
    RunResult& run = runs.Add(whole);
    if (both || spec == compared.other) run.cores = {1, share, 0};
  }
  runs.Put("s");
  return Render(ShippedReport(compared.report), store, {"", format}).bytes;
}

TEST(DisturbedTimes, MakeNoSentence) {
  for (const Compared& compared : kCompared) {
    const Json panel = ParseJson(Disturbed(compared, 0.78, ReportFormat::kJson), "a report").at("panels").at(0);
    const auto said = panel.at("conclusion").get<std::vector<std::string>>();
    ASSERT_FALSE(said.empty()) << compared.report;
    EXPECT_EQ(said[0],
              "The machine was busy, so this page draws no conclusion about time: others held 78 % of the cores in 1 "
              "of 2 runs.")
        << compared.report;
    EXPECT_THAT(said, Each(Not(HasSubstr("step time by")))) << compared.report;
    EXPECT_THAT(said, Each(Not(HasSubstr("times as fast")))) << compared.report;
    EXPECT_THAT(said, Each(Not(HasSubstr("tokens/s")))) << compared.report;
    EXPECT_THAT(said, Each(Not(HasSubstr("throughput")))) << compared.report;
    const Json quiet = ParseJson(Disturbed(compared, 0.19, ReportFormat::kJson), "a report").at("panels").at(0);
    EXPECT_THAT(quiet.at("conclusion").get<std::vector<std::string>>(), Each(Not(HasSubstr("Nothing is said"))));
  }
}

// In a comparison both runs count: the disturbed one may be the reference.
TEST(DisturbedTimes, ADisturbedReferenceMakesNoSentenceEither) {
  for (const double slower : {1.0, 1.3}) {
    const TempDir dir;
    store::Store store = store::Store::Open(dir / "ridgeline.db", store::Store::Mode::kReadWrite);
    Runs runs(store);
    for (const char* policy : {"none", "full"}) {
      RunResult& run = runs.Add({{"model", "llama-10m"}, {"checkpointing", policy}, {"warmup_steps", 2}, {"steps", 5}});
      run.step_ns.all_ns = {9, 9};
      const double factor = policy == std::string("full") ? slower : 1;
      for (const double share : {1.0, 1.01, 0.99, 1.015, 0.985}) {
        run.step_ns.all_ns.push_back(static_cast<int64_t>(1e9 * share * factor));
      }
      run.step_ns.median_ns = static_cast<int64_t>(1e9 * factor);
      if (policy == std::string("none")) run.cores = {1, 0.9, 0};
    }
    runs.Put("s");
    const auto said = [&](const Json& panel) { return panel.at("conclusion").get<std::vector<std::string>>(); };
    const std::string json = Render(ShippedReport("activation-checkpointing"), store, {"", ReportFormat::kJson}).bytes;
    const std::vector<std::string> sentences = said(ParseJson(json, "a report").at("panels").at(0));
    EXPECT_EQ(sentences.at(0),
              "The machine was busy, so this page draws no conclusion about time: others held 90 % of the cores in 1 "
              "of 2 runs.");
    EXPECT_THAT(sentences, Each(Not(HasSubstr("step time")))) << slower;
  }
}

TEST(DisturbedTimes, OneLineSaysThatAllRunsWereDisturbed) {
  for (const Compared& compared : kCompared) {
    const std::string markdown = Disturbed(compared, 0.78, ReportFormat::kMarkdown, /*both=*/true);
    EXPECT_THAT(markdown, HasSubstr("; all disturbed: others held more than 20 % of the cores")) << compared.report;
    EXPECT_THAT(markdown, Not(HasSubstr("\xE2\x80\xA0"))) << compared.report;
    EXPECT_THAT(Disturbed(compared, 0.78, ReportFormat::kHtml, true), Not(HasSubstr("\xE2\x80\xA0</td>")));
    EXPECT_THAT(Disturbed(compared, 0.78, ReportFormat::kCsv, true), HasSubstr(",0.78,")) << compared.report;
    EXPECT_THAT(Disturbed(compared, 0.78, ReportFormat::kText, true), HasSubstr(" Run")) << compared.report;
  }
}

TEST(DisturbedTimes, AreMarkedInEveryForm) {
  for (const Compared& compared : kCompared) {
    const std::string markdown = Disturbed(compared, 0.78, ReportFormat::kMarkdown);
    EXPECT_THAT(markdown, HasSubstr("\xE2\x80\xA0")) << compared.report;
    EXPECT_THAT(markdown, HasSubstr("1 disturbed (\xE2\x80\xA0: others held more than 20 % of the cores)"));
    EXPECT_THAT(Disturbed(compared, 0.78, ReportFormat::kHtml), HasSubstr("\xE2\x80\xA0</td>")) << compared.report;
    const std::string csv = Disturbed(compared, 0.78, ReportFormat::kCsv);
    EXPECT_THAT(csv.substr(0, csv.find('\n')), HasSubstr("disturbed_by_others")) << compared.report;
    EXPECT_THAT(csv, HasSubstr(",0.78,")) << compared.report;
    EXPECT_THAT(csv, Not(HasSubstr("\xE2\x80\xA0"))) << "figures of programs are figures";
    EXPECT_THAT(Disturbed(compared, 0.19, ReportFormat::kMarkdown), Not(HasSubstr("\xE2\x80\xA0")));
  }
}

// Every fifth step stalls, which no median shows.
TEST(PeriodicStalls, ShowInTheMeanBesideTheMedian) {
  const TempDir dir;
  store::Store store = store::Store::Open(dir / "ridgeline.db", store::Store::Mode::kReadWrite);
  Runs runs(store);
  RunResult& run = runs.Add({{"model", "llama-10m"}, {"warmup_steps", 1}, {"steps", 5}});
  run.step_ns.median_ns = 1'000'000'000;
  run.step_ns.all_ns = {2'000'000'000, 1'000'000'000, 1'000'000'000, 1'000'000'000, 1'000'000'000, 6'000'000'000};
  runs.Put("s");
  for (const char* name : {"activation-checkpointing", "precision", "sweep"}) {
    const std::string page = Render(ShippedReport(name), store, {"", ReportFormat::kMarkdown}).bytes;
    EXPECT_THAT(page, HasSubstr("| 1 s | 2 s | ")) << name;
  }
}

TEST(FiguresOfAGpu, AreInEveryReportOfThroughput) {
  const TempDir dir;
  store::Store store = store::Store::Open(dir / "ridgeline.db", store::Store::Mode::kReadWrite);
  Runs runs(store);
  for (const int ranks : {1, 8}) {
    RunResult& run = runs.Add({{"model", "llama-10m"}, {"device", "cuda"}, {"gpu", "h200"}, {"ranks", ranks}});
    run.step_ns.median_ns = 10'000'000;
    run.flops = {4.945e12, 9.89e12, 12e12};
  }
  runs.Put("s");
  for (const char* name : {"activation-checkpointing", "precision", "scaling", "pareto", "sweep", "batch-scaling"}) {
    const Report report = ShippedReport(name);
    const std::string csv = Render(report, store, {"", ReportFormat::kCsv}).bytes;
    if (csv.find('\n') + 1 == csv.size()) continue;  // nothing to compare
    EXPECT_THAT(csv.substr(0, csv.find('\n')),
                HasSubstr("tokens_per_s_per_gpu,tflops_per_gpu,mfu,peak_tflops_per_gpu,tflops_per_gpu_noncausal,"
                          "mfu_noncausal"))
        << name;
    EXPECT_THAT(csv, HasSubstr(",494.5,0.5,989,989,1,")) << name;
    const std::string page = Render(report, store, {"", ReportFormat::kHtml}).bytes;
    EXPECT_THAT(page, HasSubstr("Model FLOPs, causal attention as half")) << name;
    EXPECT_THAT(page, HasSubstr(">50.0\xC2\xA0% of 989</td>")) << name;
  }
}

}  // namespace
}  // namespace ridgeline::report
