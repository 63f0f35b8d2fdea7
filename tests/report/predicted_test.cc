// Predictions beside measurements: the Pareto front, and scaling to thousands of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "report/lines.h"
#include "report/page.h"
#include "report/scatter.h"
#include "run/result.h"
#include "tests/base/temp_dir.h"
#include "tests/report/sample.h"

namespace ridgeline::report {
namespace {

using report_sample::Runs;
using report_sample::ShippedReport;
using testing::AllOf;
using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;
using testing::SizeIs;

class PredictedPages : public testing::Test {
 protected:
  RunResult& Measure(Runs& runs, int batch, const char* policy, double tokens_per_s, int64_t peak_bytes) {
    RunResult& result = runs.Add({{"model", "llama-10m"}, {"batch_size", batch}, {"checkpointing", policy}});
    result.throughput.steady_tokens_per_s = tokens_per_s;
    result.memory.planned_peak_bytes = peak_bytes;
    return result;
  }

  // With 8 GPUs per machine.
  void Predict(const Json& values, double tokens_per_s, int64_t peak_bytes, double exposed_ns = 0) {
    const auto more = [&](RunResult& result) {
      result.emulated = emulated_;
      result.throughput.cold_tokens_per_s = 0.9 * tokens_per_s;
      result.evidence = {{"exposed_ns", std::to_string(static_cast<int64_t>(exposed_ns))},
                         {"communication_ns", "90000000"},
                         {"step_low_ns", "150000000"},
                         {"step_high_ns", "270000000"},
                         {"usd_per_billion_tokens", "12.5"},
                         {"basis", "predicted, extrapolated"}};
    };
    report_sample::PutPrediction(store_, values, tokens_per_s, peak_bytes, more, predicted_as_);
  }

  Rows Answer(const Report& report, const std::map<std::string, std::string>& texts = {}) {
    return {report, store_.Query(report.sql, texts)};
  }

  std::string predicted_as_ = R"({"cpus":0,"nodes":1,"predicted_on":"p5","trainer":["ridgeline-train"]})";
  bool emulated_ = false;
  TempDir dir_;
  store::Store store_ = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
};

TEST_F(PredictedPages, TheFrontIsWhatNoOtherBeatsInBoth) {
  Runs runs(store_);
  Measure(runs, 1, "none", 1000, 100'000'000);
  Measure(runs, 2, "none", 1800, 200'000'000);
  Measure(runs, 1, "full", 900, 150'000'000);
  Measure(runs, 2, "full", 1700, 120'000'000);
  runs.Add({{"model", "llama-10m"}, {"batch_size", 64}}, RunStatus::kOomHost).evidence = {
      {"wanted_bytes", "900000000"}};
  runs.Put("s");
  const Report report = ShippedReport("pareto");
  const Rows rows = Answer(report);
  ASSERT_EQ(rows.size(), 5U);
  const auto front = [&](size_t row) { return rows.Text(row, "is_front"); };
  EXPECT_EQ(rows.Text(0, "run"), "batch 1, bf16");
  EXPECT_EQ(front(0), "1");
  EXPECT_EQ(front(1), "1");
  EXPECT_EQ(front(2), "") << "it failed";
  EXPECT_EQ(rows.Text(3, "policy_words"), "activation checkpointing full");
  EXPECT_EQ(front(3), "0") << "batch 2 is quicker in less";
  EXPECT_EQ(front(4), "1");
  const std::vector<size_t> panel = MakePanels(rows).at(0).rows;
  EXPECT_THAT(
      Conclude(report, rows, panel),
      ElementsAre("The fastest is batch 2 in bf16, no activation checkpointing: 1.80K tokens/s in 200 MB. Dominated, "
                  "because another is as fast in as little memory: 1.",
                  "The smallest is batch 1 in bf16, no activation checkpointing: 100 MB, at 1.00K "
                  "tokens/s."));
  const ScatterChart chart = MakeScatterChart(report, report.charts.at(0), rows, panel, "c");
  const std::string svg = RenderScatterChart(chart, svg::kWide);
  EXPECT_THAT(svg, HasSubstr("class=\"through\""));
  size_t pale = 0;
  for (size_t at = svg.find("opacity=\"0.35\""); at != std::string::npos; at = svg.find("opacity=\"0.35\"", at + 1))
    ++pale;
  EXPECT_EQ(pale, 1U) << "of the one that is dominated";
}

TEST_F(PredictedPages, PredictionsHaveTheirOwnFrontAndOutlines) {
  Runs runs(store_);
  Measure(runs, 1, "none", 1000, 100'000'000);
  Measure(runs, 2, "none", 1800, 200'000'000);
  runs.Put("s");
  Predict({{"model", "llama-10m"}, {"batch_size", 1}}, 1e6, 50'000'000);
  Predict({{"model", "llama-10m"}, {"batch_size", 2}}, 2e6, 90'000'000);
  const Report report = ShippedReport("pareto");
  for (const std::map<std::string, std::string>& texts : {std::map<std::string, std::string>{}, {{"sweep", "s"}}}) {
    const Rows rows = Answer(report, texts);
    ASSERT_EQ(rows.size(), 4U) << "a sweep's page has what is predicted of its points";
    for (size_t row = 0; row < 4; ++row) EXPECT_EQ(rows.Text(row, "is_front"), "1") << row;
    const ScatterChart chart = MakeScatterChart(report, report.charts.at(0), rows, MakePanels(rows).at(0).rows, "c");
    ASSERT_THAT(chart.groups, SizeIs(2));
    EXPECT_FALSE(chart.groups[0].hollow);
    EXPECT_TRUE(chart.groups[1].hollow);
    const std::string svg = RenderScatterChart(chart, svg::kWide);
    size_t lines = 0;
    for (size_t at = svg.find("\"through\""); at != std::string::npos; at = svg.find("\"through\"", at + 1)) ++lines;
    EXPECT_EQ(lines, 2U) << "they are not compared with each other";
  }
}

TEST_F(PredictedPages, ScalingShowsPredictedRanksHollowBesideMeasuredOnes) {
  Runs runs(store_);
  for (const int ranks : {1, 2, 4, 8}) {
    RunResult& run = runs.Add({{"model", "llama-10m"}, {"ranks", ranks}, {"shard", "full"}});
    run.throughput.steady_tokens_per_s = 900 * ranks;
    if (ranks == 2 || ranks == 4) run.evidence["rank_wait_ns"] = fmt::format("[{},0]", run.step_ns.median_ns / 2);
    if (ranks == 8) run.evidence["rank_wait_ns"] = "[garbage";
  }
  runs.Put("s");
  const Report report = ShippedReport("scaling");
  const auto chart_of = [&](const char* id, const Rows& rows) {
    for (const ReportChart& chart : report.charts) {
      if (chart.id == id) return MakeLineChart(report, chart, rows, MakePanels(rows).at(0).rows, "c");
    }
    ADD_FAILURE() << id;
    return LineChart();
  };
  const Rows measured = Answer(report);
  const LineChart waited = chart_of("exposed", measured);
  ASSERT_THAT(waited.lines, SizeIs(1));
  ASSERT_THAT(waited.lines[0].points, SizeIs(2)) << "two and four ranks said it";
  EXPECT_NEAR(waited.lines[0].points[0].y, 25, 1e-6);
  const auto parts = [&](size_t row) {
    return std::stod(measured.Text(row, "working_ms")) / std::stod(measured.Text(row, "step_ms"));
  };
  EXPECT_EQ(parts(0), 1) << "one rank waits for nobody";
  EXPECT_NEAR(parts(1), 0.75, 1e-6);
  EXPECT_EQ(measured.Text(3, "working_ms"), "");
  EXPECT_THAT(chart_of("step", measured).lines, SizeIs(1));
  for (int ranks = 1; ranks <= 4096; ranks *= 8) {
    Predict({{"model", "llama-10m"}, {"ranks", ranks}, {"shard", "full"}}, 1000.0 * ranks, 1'000'000, 1e7);
  }
  const Rows rows = Answer(report);
  const LineChart step = chart_of("step", rows);
  ASSERT_THAT(step.lines, SizeIs(2));
  EXPECT_EQ(step.lines[1].stroke, Stroke::kDotted);
  EXPECT_THAT(step.at, Contains(4096));
  const std::string svg = RenderLineChart(step, svg::kWide);
  EXPECT_THAT(svg, HasSubstr("class=\"hollow\""));
  const LineChart exposed = chart_of("exposed", rows);
  ASSERT_THAT(exposed.lines, SizeIs(2));
  EXPECT_THAT(exposed.lines[0].points, SizeIs(5));
  EXPECT_DOUBLE_EQ(exposed.lines[0].points[0].y, 5);
  EXPECT_THAT(chart_of("cost", rows).lines, SizeIs(1));
}

// One configuration, in the report `batch-scaling`.
TEST_F(PredictedPages, ShowsMeasurementsBesideTheirPredictions) {
  Runs runs(store_);
  RunResult& first = Measure(runs, 1, "none", 1000, 100'000'000);
  first.memory.device_peak_bytes = 200'000'000;
  Measure(runs, 2, "none", 1800, 200'000'000);
  runs.Put("s");
  Predict({{"model", "llama-10m"}, {"batch_size", 1}}, 1100, 150'000'000);
  const Report report = ShippedReport("batch-scaling");
  const Rows rows = Answer(report);
  ASSERT_EQ(rows.size(), 3U);
  const auto row_of = [&](const char* provenance, const char* batch) {
    for (size_t row = 0; row < rows.size(); ++row) {
      if (rows.Text(row, "provenance") == provenance && rows.Text(row, "batch_size") == batch) return row;
    }
    ADD_FAILURE() << provenance << batch;
    return size_t{0};
  };
  const size_t with = row_of("measured", "1");
  EXPECT_THAT(rows.Number(with, "steady_difference_percent"), Optional(DoubleNear(10, 1e-6))) << "predicted too high";
  EXPECT_THAT(rows.Number(with, "memory_difference_percent"), Optional(DoubleNear(-25, 1e-6)));
  EXPECT_THAT(rows.Number(with, "predicted_steady_tokens_per_s_low"), Optional(DoubleNear(1100 * 200.0 / 270, 1e-6)));
  EXPECT_EQ(rows.Text(with, "predicted_on"), "p5");
  const size_t without = row_of("measured", "2");
  EXPECT_EQ(rows.Number(without, "steady_difference_percent"), std::nullopt);
  EXPECT_EQ(rows.Number(without, "memory_difference_percent"), std::nullopt);
  const size_t itself = row_of("predicted", "1");
  EXPECT_EQ(rows.Number(itself, "steady_difference_percent"), std::nullopt) << "it is not held against itself";
  EXPECT_THAT(rows.Number(itself, "steady_tokens_per_s_high"), Optional(DoubleNear(1100 * 200.0 / 150, 1e-6)));
  const std::vector<std::string> said = Conclude(report, rows, MakePanels(rows).at(0).rows);
  EXPECT_THAT(said,
              Contains(HasSubstr("1 of 2 runs have a prediction. The largest error of predicted steady "
                                 "throughput is 10.0\xC2\xA0%: 1.10K tokens/s predicted, 1.00K tokens/s measured")));
  EXPECT_THAT(said, Contains(HasSubstr("1 of 2 runs have no prediction; their columns for it are empty")));
  const std::string csv = Render(report, store_, {"", ReportFormat::kCsv}).bytes;
  EXPECT_THAT(csv, HasSubstr("steady_difference_percent"));
  EXPECT_THAT(Render(report, store_, {"", ReportFormat::kMarkdown}).bytes,
              AllOf(HasSubstr("Error of the prediction: steady"), HasSubstr("+10.0")));
}

TEST_F(PredictedPages, APredictionAsAnotherTrainerOrOfAnEmulatedStepIsComparedWithNoTime) {
  Runs runs(store_);
  Measure(runs, 1, "none", 1000, 100'000'000);
  runs.Put("s");
  predicted_as_ = R"({"cpus":0,"nodes":1,"predicted_on":"p5","trainer":["te-fsdp"]})";
  Predict({{"model", "llama-10m"}, {"batch_size", 1}}, 1100, 150'000'000);
  for (const char* name : {"batch-scaling", "prediction-audit"}) {
    const Report report = ShippedReport(name);
    const Rows rows = Answer(report);
    for (size_t row = 0; row < rows.size(); ++row) {
      EXPECT_EQ(rows.Number(row, "steady_difference_percent"), std::nullopt) << name;
      EXPECT_EQ(rows.Number(row, "error_percent"), std::nullopt) << name;
    }
  }
  predicted_as_ = R"({"cpus":0,"nodes":1,"predicted_on":"p5","trainer":["ridgeline-train"]})";
  emulated_ = true;
  Predict({{"model", "llama-10m"}, {"batch_size", 1}}, 1100, 150'000'000);
  const Report report = ShippedReport("batch-scaling");
  const Rows rows = Answer(report);
  size_t beside = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    EXPECT_EQ(rows.Number(row, "steady_difference_percent"), std::nullopt);
    beside += rows.Number(row, "predicted_peak_bytes") ? 1 : 0;
  }
  EXPECT_EQ(beside, 1U) << "the run has a prediction, whose time is no measure of its own";
}

TEST_F(PredictedPages, FormatsBySizeTellAGainOnlyWhereTheIntervalsDo) {
  const auto predict = [&](const char* model, const char* format, double tokens_per_s) {
    Predict({{"model", model}, {"precision", format}, {"state_precision", "bf16"}}, tokens_per_s, 1'000'000);
  };
  // With 150 to 270 ms each, a ratio lies within a factor of 1.52.
  predict("stack-1b", "bf16", 1000);
  predict("stack-1b", "mxfp8", 1400);
  predict("stack-32b", "bf16", 100);
  predict("stack-32b", "mxfp8", 180);
  const Report report = ShippedReport("formats-by-size");
  const Rows rows = Answer(report);
  ASSERT_EQ(rows.size(), 4U);
  const auto verdict = [&](const char* model) {
    for (size_t row = 0; row < rows.size(); ++row) {
      if (rows.Text(row, "model") == model && rows.Text(row, "precision") == "mxfp8") {
        return rows.Text(row, "steady_verdict");
      }
    }
    return std::string();
  };
  EXPECT_EQ(verdict("stack-1b"), "undecided");
  EXPECT_EQ(verdict("stack-32b"), "gain");
  const std::vector<std::string> said = Conclude(report, rows, MakePanels(rows).at(0).rows);
  EXPECT_THAT(said, Contains(HasSubstr("In cold throughput, 0 of 1 prediction gain more than a tenth, 0 gain less, and "
                                       "1 are undecided. This neither supports nor contradicts it")));
  EXPECT_THAT(said, Contains(HasSubstr("large models gain most. ")));
  EXPECT_THAT(said, testing::Not(Contains(HasSubstr("This supports it"))));
}

TEST_F(PredictedPages, ScalingThatIsOnlyPredictedSaysSo) {
  for (const int ranks : {8, 4096}) {
    Predict({{"model", "llama-10m"}, {"ranks", ranks}, {"shard", "full"}}, ranks == 8 ? 8000 : 2'048'000, 1'000'000,
            1e7);
  }
  const Report report = ShippedReport("scaling");
  const Rows rows = Answer(report);
  EXPECT_THAT(Conclude(report, rows, MakePanels(rows).at(0).rows),
              Contains(HasSubstr(
                  "With 4096 ranks, sharded, throughput is 256.00\xC2\xA0\xC3\x97 that of 8 ranks, at an efficiency of "
                  "50.0\xC2\xA0%; 5.0\xC2\xA0% of a step waits for other ranks (predicted")));
}

}  // namespace
}  // namespace ridgeline::report
