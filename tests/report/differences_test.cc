// Runs that would look the same but are not: tables and charts show every difference.
#include "report/differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/page.h"
#include "run/result.h"
#include "tests/base/temp_dir.h"
#include "tests/report/sample.h"

namespace ridgeline::report {
namespace {

using report_sample::Runs;
using report_sample::ShippedReport;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

class DifferencesTest : public testing::Test {
 protected:
  // A measurement of llama-10m at batch 1, in a separate sweep.
  void Measure(const Json& fields, const MeasurementKey& as, const std::string& memory = "24 GiB",
               const std::string& device = "Example CPU", const std::string& definition = "") {
    std::vector<Problem> problems;
    Json all = {{"model", "llama-10m"}};
    all.update(fields);
    const RunSpec spec = BuildSpec(all, problems);
    ASSERT_TRUE(problems.empty());
    const Point point = {PointId(spec), spec};
    store_.PutSweep({"s", "", "s.yaml", "name: s\n", 1, as}, std::vector<Point>{point});
    RunResult result;
    result.point_id = point.id;
    result.status = RunStatus::kOk;
    result.device = device;
    result.throughput = {100, 90};
    result.step_ns.median_ns = 5;
    result.environment = {{"cpu", "Example CPU"}, {"memory", memory}};
    if (!definition.empty()) result.environment["definition"] = definition;
    store_.AddResults(std::vector<store::NewResult>{{result, "", 0, as}});
  }

  Rows Answer(const Report& report) {
    Table table = store_.Query(report.sql);
    AddDifferences(report, store_, table);
    return {report, std::move(table)};
  }

  std::vector<std::string> Differences(const Rows& rows) {
    std::vector<std::string> words;
    for (size_t row = 0; row < rows.size(); ++row) words.push_back(rows.Text(row, "differs"));
    std::sort(words.begin(), words.end());
    return words;
  }

  TempDir dir_;
  store::Store store_ = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
  Report report_ = ShippedReport();
};

TEST_F(DifferencesTest, AFieldThatNoLabelSaysIsSaid) {
  Measure({{"seed", 1}}, {});
  Measure({{"seed", 2}, {"weight_decay", 0.5}}, {});
  EXPECT_THAT(Differences(Answer(report_)), ElementsAre("seed 1, weight_decay 0.1", "seed 2, weight_decay 0.5"));
}

TEST_F(DifferencesTest, FiguresThatFollowFromTheFormatAreNoDifference) {
  Measure({{"precision", "bf16"}}, {});
  Measure({{"precision", "fp8"}}, {});
  Measure({{"precision", "mxfp8"}}, {});
  EXPECT_THAT(Differences(Answer(ShippedReport("precision"))), ElementsAre("", "", ""));
  Measure({{"precision", "mxfp8"}, {"batch_size", 2}, {"scaling", "floor"}}, {});
  EXPECT_THAT(Differences(Answer(ShippedReport("precision"))),
              ElementsAre("", "scaling delayed", "scaling floor", "scaling round_up"));
}

TEST_F(DifferencesTest, DoesNotRepeatTheLabels) {
  Measure({{"batch_size", 1}}, {});
  Measure({{"batch_size", 2}, {"checkpointing", "full"}}, {});
  EXPECT_THAT(Differences(Answer(report_)), ElementsAre("", ""));
  const Rows rows = Answer(report_);
  for (const ReportColumn* column : TableColumns(report_, rows, MakePanels(rows).at(0).rows)) {
    EXPECT_NE(column->name, "differs") << "nobody needs an empty column";
  }
}

TEST_F(DifferencesTest, SetupAndMachineAreSaidAsFarAsTheyDiffer) {
  Measure(Json::object(), {"default", SetupOf({}, 0, 1, {{"OMP_PROC_BIND", "true"}})});
  Measure({{"seed", 7}}, {"default", SetupOf({}, 0)}, "48 GiB");
  const std::vector<std::string> said = Differences(Answer(report_));
  EXPECT_THAT(said, Contains(AllOf(HasSubstr("environment.OMP_PROC_BIND true"), HasSubstr("machine 24 GiB"),
                                   Not(HasSubstr("Example CPU")))));
  EXPECT_THAT(said, Contains(AllOf(Not(HasSubstr("OMP_PROC_BIND")), HasSubstr("machine 48 GiB"))));
}

TEST_F(DifferencesTest, SaysWhatOnlyOneAsksFor) {
  Measure(Json::object(), {"default", R"({"cpus":0,"slurm":{"container":"a:1","gpus":8},"trainer":["t"]})"});
  Measure({{"seed", 7}}, {"default", R"({"cpus":0,"nodes":4,"slurm":{"gpus":8},"trainer":["t"]})"});
  const std::vector<std::string> said = Differences(Answer(report_));
  EXPECT_THAT(said, Contains(AllOf(HasSubstr("slurm.container a:1"), Not(HasSubstr("nodes")))));
  EXPECT_THAT(said, Contains(AllOf(HasSubstr("nodes 4"), Not(HasSubstr("container")))));
  EXPECT_THAT(said, Not(Contains(HasSubstr("gpus")))) << "both have as many";
}

TEST_F(DifferencesTest, RunsOfAnotherSetupAreNotCompared) {
  const MeasurementKey one = {"default", SetupOf({}, 0, 1, {{"OMP_NUM_THREADS", "1"}})};
  for (const char* precision : {"bf16", "fp32"}) {
    for (const char* policy : {"none", "full"}) {
      Measure({{"precision", precision}, {"checkpointing", policy}},
              std::string(precision) + policy == "bf16none" ? one : MeasurementKey());
    }
  }
  const auto compared = [&](const char* report, const std::string& figure) {
    const Report shipped = ShippedReport(report);
    const Rows rows = Answer(shipped);
    std::vector<std::string> panels;
    for (size_t row = 0; row < rows.size(); ++row) {
      if (rows.Number(row, figure)) panels.push_back(rows.Text(row, "panel"));
    }
    return panels;
  };
  EXPECT_THAT(compared("activation-checkpointing", "recompute_overhead_percent"),
              ElementsAre("llama-10m, fp32, sequence 512"));
  EXPECT_THAT(compared("precision", "bf16_speedup"), ElementsAre("llama-10m, sequence 512, checkpointing full"));
}

TEST_F(DifferencesTest, EveryMeasurementIsToldFromTheOthers) {
  Measure(Json::object(), {"night-1", DefaultSetup()});
  Measure(Json::object(), {"night-2", DefaultSetup()});
  RenderOptions options;
  options.all_measurements = true;
  options.format = ReportFormat::kHtml;
  const std::string html = Render(report_, store_, options).bytes;
  EXPECT_THAT(html, AllOf(HasSubstr("Differs in"), HasSubstr("class=\"more\">campaign night-1</td>")));
  EXPECT_THAT(html, HasSubstr(">campaign night-2</text>")) << "below its bar";
  options.format = ReportFormat::kMarkdown;
  EXPECT_THAT(Render(report_, store_, options).bytes, HasSubstr("| campaign night-2 |"));
}

TEST_F(DifferencesTest, LinesAreNotDrawnThroughRunsThatDiffer) {
  for (const int seed : {1, 2}) {
    for (const int batch : {1, 2}) Measure({{"seed", seed}, {"batch_size", batch}}, {});
  }
  const Rows rows = Answer(report_);
  const LineChart lines = MakeLineChart(report_, report_.charts.at(2), rows, MakePanels(rows).at(0).rows, "c");
  ASSERT_EQ(lines.lines.size(), 2U);
  EXPECT_THAT((std::vector{lines.lines[0].legend, lines.lines[1].legend}),
              UnorderedElementsAre("none, seed 1", "none, seed 2"));
}

TEST_F(DifferencesTest, PointsOfARuleBelongToTheirSweep) {
  std::vector<Problem> problems;
  std::vector<Point> points;
  for (const int batch : {1, 2}) {
    const RunSpec spec = BuildSpec({{"model", "llama-10m"}, {"batch_size", batch}}, problems);
    points.push_back({PointId(spec), spec});
  }
  const std::string other = SetupOf({}, 0, 1, {{"OMP_PROC_BIND", "true"}});
  store_.PutSweep({"s", "", "s.yaml", "name: s\n", 1}, points,
                  [&](const Point& point) { return point.spec.batch_size == 2 ? other : DefaultSetup(); });
  std::vector<store::NewResult> results;
  for (const Point& point : points) {
    RunResult result;
    result.point_id = point.id;
    result.status = RunStatus::kOk;
    results.push_back({result, "", 0, {"default", point.spec.batch_size == 2 ? other : DefaultSetup()}});
  }
  store_.AddResults(results);
  for (const char* report : {"activation-checkpointing", "precision"}) {
    EXPECT_EQ(Render(ShippedReport(report), store_, {"s", ReportFormat::kCsv}).runs, 2) << report;
  }
}

// A trainer that reports nothing about its machine still reports its device.
TEST_F(DifferencesTest, AnotherDeviceIsADifference) {
  Measure({{"seed", 1}}, {}, "24 GiB", "GPU A");
  Measure({{"seed", 2}}, {}, "24 GiB", "GPU B");
  const Table numbers = store_.Query("SELECT number FROM results ORDER BY number");
  std::vector<std::optional<int64_t>> results;
  for (const auto& row : numbers.rows) results.emplace_back(std::get<int64_t>(row[0]));
  EXPECT_EQ(TellApart(store_, results, {"seed"}), (std::vector<std::string>{"device GPU A", "device GPU B"}));
  EXPECT_EQ(TellApart(store_, results, {"seed", "device_name"}), (std::vector<std::string>{"", ""}));
}

// A trainer's name without a release may have meant a different one at another time.
TEST_F(DifferencesTest, AnotherReleaseIsADifference) {
  const auto measure = [&](int seed, const std::string& definition) {
    Measure({{"seed", seed}, {"trainer", "titan"}}, {}, "24 GiB", "Example CPU", definition);
  };
  measure(1, "titan@0.2 (v0.2.0)");
  measure(2, "titan@0.3 (v0.3.0)");
  measure(3, "titan (v0.3.0)");
  const Table numbers = store_.Query("SELECT number FROM results ORDER BY number");
  std::vector<std::optional<int64_t>> results;
  for (const auto& row : numbers.rows) results.emplace_back(std::get<int64_t>(row[0]));
  EXPECT_EQ(TellApart(store_, results, {"seed"}),
            (std::vector<std::string>{"definition titan@0.2 (v0.2.0)", "definition titan@0.3 (v0.3.0)", ""}));
}

}  // namespace
}  // namespace ridgeline::report
