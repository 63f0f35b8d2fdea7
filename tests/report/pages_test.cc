// The shipped reports other than those that compare policies, formats and ranks: their sentences on runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>

#include "report/page.h"
#include "run/result.h"
#include "tests/base/temp_dir.h"
#include "tests/report/sample.h"
#include "tests/report/xml.h"

namespace ridgeline::report {
namespace {

using report_sample::FillSample;
using report_sample::Runs;
using report_sample::ShippedReport;
using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;
using testing::SizeIs;

class ShippedPages : public testing::Test {
 protected:
  static Json Spec(int batch, int length = 128, const char* policy = "none", const char* model = "llama-25m") {
    return {{"model", model}, {"batch_size", batch}, {"seq_length", length}, {"checkpointing", policy}};
  }
  RunResult& AddOutOfMemory(Runs& runs, const Json& spec) {
    RunResult& skipped = runs.Add(spec, RunStatus::kSkippedPredictedOom);
    skipped.provenance = Provenance::kPredicted;
    skipped.memory.planned_peak_bytes = 3'000'000'000;
    skipped.memory.by_category = {{"parameters", 1'000'000'000}, {"activations", 2'000'000'000}};
    skipped.evidence = {{"wanted_bytes", "3000000000"}, {"available_bytes", "2000000000"}};
    return skipped;
  }
  Rows Answer(const Report& report) { return {report, store_.Query(report.sql)}; }
  // The sentences of a panel.
  std::vector<std::string> Said(const Report& report, size_t panel = 0) {
    const Rows rows = Answer(report);
    return Conclude(report, rows, MakePanels(rows).at(panel).rows);
  }

  TempDir dir_;
  store::Store store_ = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
};

TEST_F(ShippedPages, EachIsAWholePageOfTheSampleAndOfNothing) {
  const std::vector<std::filesystem::path> shipped =
      FindReports({std::filesystem::path(RIDGELINE_SOURCE_DIR) / "reports"});
  EXPECT_THAT(shipped, SizeIs(testing::Ge(11)));
  for (const bool filled : {false, true}) {
    if (filled) FillSample(store_);
    for (const std::filesystem::path& folder : shipped) {
      const Report report = LoadReportFolder(folder);
      for (const ReportFormat format : {ReportFormat::kHtml, ReportFormat::kMarkdown, ReportFormat::kCsv}) {
        const RenderedReport page = Render(report, store_, {"", format});
        EXPECT_FALSE(page.bytes.empty()) << report.name;
        if (format == ReportFormat::kHtml) ParseXml(page.bytes);
      }
    }
  }
}

TEST_F(ShippedPages, BatchScalingSaysWhatABatchGivesAndFromWhichOnMoreBuysLittle) {
  Runs runs(store_);
  const double tokens_per_s[] = {1000, 1800, 1980, 2000};
  for (int i = 0; i < 4; ++i) {
    RunResult& result = runs.Add(Spec(1 << i));
    const double step_s = 128.0 * (1 << i) / tokens_per_s[i];
    result.throughput.steady_tokens_per_s = tokens_per_s[i];
    for (int64_t& ns : result.step_ns.all_ns) ns = static_cast<int64_t>(1e9 * step_s);
    result.step_ns.median_ns = static_cast<int64_t>(1e9 * step_s);
  }
  AddOutOfMemory(runs, Spec(64));
  runs.Put("s");
  const Report report = ShippedReport("batch-scaling");
  const Rows rows = Answer(report);
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_THAT(rows.Number(3, "speedup"), Optional(DoubleNear(2, 1e-9)));
  EXPECT_THAT(rows.Number(3, "bytes_a_sequence"), Optional(160'000'000));
  EXPECT_EQ(rows.Text(3, "enough_batch"), "4");
  const std::vector<std::string> said = Said(report);
  EXPECT_THAT(said.at(0), HasSubstr("batch 8 gives 2.00\xC2\xA0\xC3\x97 the throughput of batch 1."));
  EXPECT_THAT(said, Contains(HasSubstr("batch 4 has 95 % of the best throughput measured already")));
  EXPECT_THAT(said, Contains(HasSubstr("each further sequence of the batch adds 160 MB of planned memory")));
  EXPECT_THAT(said, Contains(HasSubstr("Out of memory: no activation checkpointing at batch 64 needs 3.00")));
  const LineChart chart = MakeLineChart(report, report.charts.at(0), rows, MakePanels(rows).at(0).rows, "c");
  EXPECT_THAT(chart.at, ElementsAre(1, 2, 4, 8, 64));
}

TEST_F(ShippedPages, SequenceScalingSaysHowLongASequenceFits) {
  Runs runs(store_);
  for (const int length : {128, 256, 512}) runs.Add(Spec(1, length, "full"));
  AddOutOfMemory(runs, Spec(1, 256));
  runs.Add(Spec(1, 128));
  runs.Put("s");
  const Report report = ShippedReport("sequence-scaling");
  const Rows rows = Answer(report);
  EXPECT_THAT(MakePanels(rows), SizeIs(1)) << "lengths and policies are lines of one panel";
  const std::vector<std::string> said = Said(report);
  EXPECT_EQ(said.at(0),
            "A sequence of 512 fits, with activation checkpointing full at batch 1; sequence 256, none, batch 1 does "
            "not (predicted).");
  EXPECT_THAT(said, Contains(HasSubstr(" needs 3.00")));
  EXPECT_THAT(rows.Number(0, "token_ns"), Optional(DoubleNear(500e6 / 128, 1)));
}

TEST_F(ShippedPages, MemoryStacksPlansByModelWhetherTheyWereRunOrNot) {
  Runs runs(store_);
  runs.Add(Spec(1));
  AddOutOfMemory(runs, Spec(1, 128, "none", "llama-1b"));
  runs.Put("s");
  const Report report = ShippedReport("memory");
  const Rows rows = Answer(report);
  const std::vector<Panel> panels = MakePanels(rows);
  ASSERT_THAT(panels, SizeIs(1)) << "models stand beside each other";
  EXPECT_EQ(rows.Text(1, "model"), "llama-1b");
  EXPECT_EQ(rows.Text(1, "outcome"), "planned, not run");
  EXPECT_EQ(rows.Text(1, "differs"), "");
  EXPECT_THAT(rows.Number(1, "other_bytes"), Optional(0));
  const BarChart chart = MakeChart(report.charts.at(0), rows, panels.at(0).rows, "c");
  ASSERT_THAT(chart.slots, SizeIs(2));
  EXPECT_EQ(chart.slots[1].cluster, "llama-1b");
  ASSERT_FALSE(chart.slots[1].bars.at(0).parts.empty());
  EXPECT_EQ(chart.slots[1].bars[0].fill, Fill::kHatched);
  EXPECT_THAT(Said(report).at(0), HasSubstr("The largest planned step takes 3.00 GB: llama-1b"));
}

TEST_F(ShippedPages, FailuresHaveTheirProofAndWhetherTheyStand) {
  FillSample(store_);
  Runs runs(store_);
  RunResult& lost = runs.Add(Spec(2), InfrastructureReason::kNode);
  lost.message = "the node went away";
  lost.evidence = {
      {"node", "n7"}, {"log_tail", "a first line\n<script>alert(1)</script>\x1b[31m\n"}, {"exit_code", "137"}};
  runs.Put("t");
  const Report report = ShippedReport("failures");
  const Rows rows = Answer(report);
  std::set<std::string> panels;
  for (const Panel& panel : MakePanels(rows)) panels.insert(panel.title);
  EXPECT_THAT(panels, ElementsAre("Crashed", "Infrastructure: node", "Out of the host's memory", "Past the time limit",
                                  "Predicted out of memory, not run"));
  const size_t last = rows.size() - 1;
  EXPECT_EQ(rows.Text(last, "panel"), "Infrastructure: node") << "after what is anybody's result";
  EXPECT_EQ(rows.Text(last, "node"), "n7");
  EXPECT_EQ(rows.Text(last, "exit_code"), "137");
  EXPECT_EQ(rows.Text(last, "evidence"), "");
  EXPECT_EQ(rows.Text(last, "since"), "stands");
  EXPECT_EQ(rows.Text(1, "failure"), "oom_host");
  EXPECT_THAT(rows.Text(1, "evidence"), HasSubstr("oom_kill"));
  const std::string html = Render(report, store_, {"", ReportFormat::kHtml}).bytes;
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(html, Not(HasSubstr("\x1b")));
  EXPECT_THAT(html, HasSubstr("<summary>&lt;script&gt;"));
  EXPECT_THAT(html, HasSubstr("<pre>a first line&#10;&lt;script&gt;"));
  EXPECT_THAT(Said(report).at(0), HasSubstr("of 5 failed attempts ended in this way"));
}

TEST_F(ShippedPages, AFailureThatWasMeasuredAgainIsStillThere) {
  Runs runs(store_);
  runs.Add(Spec(2), InfrastructureReason::kStorage);
  runs.Put("s");
  Runs again(store_);
  again.Add(Spec(2));
  again.Put("s");
  const Rows rows = Answer(ShippedReport("failures"));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.Text(0, "since"), "measured since");
}

TEST_F(ShippedPages, ASweepHasItsPointsMeasuredOrNot) {
  Runs runs(store_);
  runs.Add(Spec(1));
  runs.Add(Spec(2), RunStatus::kCrashed);
  runs.Put("s");
  store_.PutSweep({"s", "a sweep", "sweep.yaml", "name: s\n", 1, {kDefaultCampaign, DefaultSetup()}}, [] {
    std::vector<Point> points;
    for (const int batch : {1, 2, 4}) {
      std::vector<Problem> problems;
      const RunSpec spec = BuildSpec(Spec(batch), problems);
      points.push_back({PointId(spec), spec});
    }
    return points;
  }());
  const Report report = ShippedReport("sweep");
  const Rows rows = Answer(report);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows.Text(0, "outcome"), "ok");
  EXPECT_EQ(rows.Text(1, "outcome"), "crashed");
  EXPECT_EQ(rows.Text(2, "outcome"), "not measured yet");
  EXPECT_EQ(Said(report).at(0), "1 of 3 points are measured and ok.");
}

TEST_F(ShippedPages, ATimelineNamesTheSlowestStep) {
  Runs runs(store_);
  RunResult& result = runs.Add(Spec(1));
  result.step_ns.all_ns = {900'000'000, 110'000'000, 100'000'000, 100'000'000, 400'000'000, 100'000'000, 100'000'000};
  result.step_ns.median_ns = 100'000'000;
  runs.Put("s");
  const Report report = ShippedReport("timeline");
  EXPECT_EQ(Said(report).at(0), "The slowest step took 4.00\xC2\xA0\xC3\x97 the median: step 5 of batch 1.");
  const Rows rows = Answer(report);
  EXPECT_EQ(rows.Series(0, "step_ms").at(4), 400);
  const LineChart chart = MakeLineChart(report, report.charts.at(0), rows, MakePanels(rows).at(0).rows, "c");
  ASSERT_THAT(chart.lines, SizeIs(1));
  EXPECT_THAT(chart.lines[0].points, SizeIs(7));
}

TEST_F(ShippedPages, ATimelineNamesTheStragglerAmongRanksAndKeepsTheQueueApart) {
  Runs runs(store_);
  RunResult& result = runs.Add({{"model", "llama-25m"}, {"ranks", 3}});
  result.evidence["rank_step_ns"] = "[100000000,101000000,100000000]";
  result.evidence["rank_wait_ns"] = "[40000000,2000000,40000000]";
  RunResult& other = runs.Add({{"model", "llama-25m"}, {"ranks", 2}});
  other.evidence["rank_step_ns"] = "no JSON";
  other.evidence["rank_wait_ns"] = R"({"a": ["b"]})";
  runs.Put("s");
  const Report report = ShippedReport("timeline");
  const Rows rows = Answer(report);
  const std::vector<Panel> panels = MakePanels(rows);
  const auto panel = std::find_if(panels.begin(), panels.end(),
                                  [&](const Panel& p) { return !rows.Text(p.rows.front(), "straggler").empty(); });
  ASSERT_NE(panel, panels.end());
  const size_t row = panel->rows.front();
  EXPECT_EQ(rows.Text(row, "straggler"), "1");
  EXPECT_THAT(rows.Number(row, "straggler_ns"), Optional(99e6));
  EXPECT_THAT(rows.Number(row, "straggler_factor"), Optional(DoubleNear(99 / 73.0, 1e-9)));
  EXPECT_THAT(Conclude(report, rows, panel->rows),
              Contains(HasSubstr("rank 1 is the slowest. It takes 1.36\xC2\xA0\xC3\x97 the mean of all")));
  const LineChart chart = MakeLineChart(report, report.charts.at(1), rows, panel->rows, "r");
  EXPECT_EQ(chart.x_axis, "rank");
  EXPECT_THAT(chart.at, ElementsAre(0, 1, 2));
  ASSERT_THAT(chart.lines, SizeIs(1));
  EXPECT_EQ(chart.lines[0].points.at(1).y, 99);
  EXPECT_EQ(report.charts.at(2).title, "Queue wait");
}

TEST_F(ShippedPages, SidesOfTheSameWorkAreComparedWithTheFirst) {
  Runs monday(store_);
  monday.Add(Spec(1)).started_unix_ns = 1'000;
  monday.Add(Spec(2));
  monday.Put("s", "monday");
  Runs tuesday(store_);
  RunResult& slower = tuesday.Add(Spec(1));
  slower.started_unix_ns = 2'000;
  slower.throughput.steady_tokens_per_s /= 2;
  for (int64_t& ns : slower.step_ns.all_ns) ns *= 2;
  tuesday.Put("s", "tuesday");
  const Report report = ShippedReport("compare");
  const RenderedReport all = Render(report, store_, {"", ReportFormat::kJson, true});
  const Json json = ParseJson(all.bytes, "the report");
  ASSERT_EQ(all.runs, 2) << "work that was done once has nothing beside it";
  const Json& second = json.at("rows").at(1);
  EXPECT_EQ(second.at("side"), "tuesday");
  EXPECT_NEAR(second.at("ratio").get<double>(), 0.5, 1e-9);
  EXPECT_EQ(second.at("ratio_change"), "less");
  EXPECT_TRUE(json.at("rows").at(0).at("ratio").is_null());
  EXPECT_THAT(Render(report, store_, {"", ReportFormat::kHtml, true}).bytes,
              HasSubstr("Tuesday has 0.50\xC2\xA0\xC3\x97 the throughput of monday."));
}

TEST_F(ShippedPages, AMemoryMapSaysWhatFitsAndWhatDoesNot) {
  Runs runs(store_);
  for (const int length : {128, 256}) runs.Add(Spec(1, length));
  AddOutOfMemory(runs, Spec(4, 256));
  runs.Put("s");
  const Report report = ShippedReport("memory-map");
  const Rows rows = Answer(report);
  EXPECT_EQ(Said(report).at(0), "Batch 1 of 256 fits, in 595 MB; batch 4 of 256 does not (predicted).");
  const HeatMap map = MakeHeatMap(report, report.charts.at(0), rows, MakePanels(rows).at(0).rows, "m");
  EXPECT_THAT(map.columns, ElementsAre("1", "4"));
  EXPECT_THAT(map.rows, ElementsAre("256", "128"));
  EXPECT_THAT(map.cells, SizeIs(3));
}

TEST_F(ShippedPages, APredictionAuditSaysHowFarOffTheyAre) {
  Runs runs(store_);
  std::vector<store::NewResult> predicted;
  const MeasurementKey as = {"predicted", R"({"predicted_on":"here"})"};
  const double ratios[] = {0.9, 1.05, 1.2, 1, 0.1};
  for (int i = 0; i < 5; ++i) {
    RunResult& measured = runs.Add(Spec(1 << i));
    if (i == 4) measured.cores = {.busy_share = 1, .others_share = 0.9};
    RunResult result = measured;
    const auto step_ns = static_cast<double>(result.step_ns.median_ns);
    result.provenance = Provenance::kPredicted;
    result.step_ns.median_ns = std::llround(ratios[i] * step_ns);
    result.throughput.steady_tokens_per_s /= ratios[i];
    const auto bound = [&](double factor) { return std::to_string(std::llround(factor * ratios[i] * step_ns)); };
    result.evidence = {{"step_low_ns", bound(0.9)}, {"step_high_ns", bound(1.1)}};
    predicted.push_back({result, "", 0, as});
  }
  runs.Add(Spec(64));  // a run without a prediction
  runs.Put("s");
  store_.AddResults(predicted);
  const Report report = ShippedReport("prediction-audit");
  const Rows rows = Answer(report);
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_THAT(rows.Number(4, "error_percent"), Optional(DoubleNear(-90, 0.01)));
  EXPECT_EQ(rows.Number(4, "is_worst"), std::nullopt) << "others disturbed it, so it counts in nothing below";
  EXPECT_THAT(rows.Number(4, "mean_off_percent"), Optional(DoubleNear(8.75, 0.01)));
  EXPECT_THAT(rows.Number(0, "error_percent"), Optional(DoubleNear(-10, 0.01)));
  EXPECT_THAT(rows.Number(0, "mean_off_percent"), Optional(DoubleNear(8.75, 0.01)));
  EXPECT_THAT(rows.Number(0, "bias_percent"), Optional(DoubleNear(3.75, 0.01)));
  EXPECT_THAT(rows.Number(0, "held_percent"), Optional(50));
  const std::vector<std::string> said = Said(report);
  EXPECT_THAT(said.at(0), HasSubstr("The mean error of 4 steps is 8.8"));
  EXPECT_THAT(said, Contains(HasSubstr("Kendall's tau of throughput is 1")));
  EXPECT_THAT(Render(report, store_, {"", ReportFormat::kHtml}).bytes, HasSubstr("Predicted on here"));
}

TEST_F(ShippedPages, APredictionAuditSaysTheErrorByOp) {
  Runs runs(store_);
  std::vector<store::NewResult> predicted;
  const MeasurementKey as = {"predicted", R"({"predicted_on":"here"})"};
  const char* const measured_ops[] = {R"({"gemm":60000,"adamw":20000,"land":1})", R"({"gemm":100000,"adamw":30000})",
                                      "no object", "[1, 2]", R"({"gemm":900000,"adamw":1})"};
  for (int i = 0; i < 5; ++i) {
    RunResult& measured = runs.Add(Spec(1 << i));
    if (i == 4) measured.cores = {.busy_share = 1, .others_share = 0.9};
    RunResult result = measured;
    measured.evidence["op_ns"] = measured_ops[i];
    result.provenance = Provenance::kPredicted;
    result.evidence = {{"op_ns", R"({"gemm":40000,"adamw":50000,"dropout":7})"}};
    predicted.push_back({result, "", 0, as});
  }
  runs.Put("s");
  store_.AddResults(predicted);
  const Report report = ShippedReport("prediction-audit");
  const Rows rows = Answer(report);
  ASSERT_EQ(rows.size(), 7U) << "five steps, and the two ops of which both are known of steps that others left alone";
  EXPECT_EQ(rows.Text(5, "run"), "gemm") << "what errs most stands first";
  EXPECT_THAT(rows.Number(5, "step_median_ns"), Optional(80000));
  EXPECT_THAT(rows.Number(5, "predicted_ns"), Optional(40000));
  EXPECT_THAT(rows.Number(5, "error_percent"), Optional(-50));
  EXPECT_THAT(rows.Number(5, "points"), Optional(2));
  EXPECT_EQ(rows.Text(6, "run"), "adamw");
  EXPECT_THAT(rows.Number(6, "error_percent"), Optional(100));
  EXPECT_THAT(rows.Number(6, "format_off_percent"), Optional(DoubleNear(100.0 * 130 / 210, 0.01))) << "of all ops";
  EXPECT_THAT(Said(report, 1).at(0), HasSubstr("The op with the largest error is gemm: 40.0"));
  EXPECT_THAT(Render(report, store_, {"", ReportFormat::kHtml}).bytes, HasSubstr("Predicted on here, by op"));
}

}  // namespace
}  // namespace ridgeline::report
