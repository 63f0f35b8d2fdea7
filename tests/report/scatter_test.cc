// Scatter plots as a reader sees them, and how they are made from a panel's rows.
#include "report/scatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "report/page.h"
#include "tests/base/temp_dir.h"
#include "tests/report/readable.h"
#include "tests/report/xml.h"

namespace ridgeline::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

ScatterFigure Exactly(double value) { return {value, value, value}; }

ScatterChart SampleScatter() {
  ScatterChart chart;
  chart.id = "trade-1";
  chart.title = "Trade";
  chart.description = "All of it in words.";
  chart.x = {"Peak memory", AxisScale::kBytes, false};
  chart.y = {"tokens/s", AxisScale::kCount, false};
  chart.groups = {
      {"none",
       0,
       false,
       {{{4e9, 3.9e9, 4.1e9}, {21'000, 20'500, 21'500}, "batch 4", "a", true, ""},
        {Exactly(2e9), Exactly(15'000), "batch 2", "b", true, ""}}},
      {"full", 1, false, {{Exactly(1.2e9), {9'000, 100, 80'000}, "batch 2", "c", true, ""}}},
      {"selective", 2, true, {{Exactly(3e9), Exactly(14'000), "batch 4", "d", false, ""}}},
      {"offload", 3, false, {{Exactly(2.01e9), Exactly(15'010), "batch 2 again, at great length", "e", false, ""}}},
      {"none, failed", 0, false, {{Exactly(5e9), {}, "batch 8", "out of memory", false, "out of memory"}}}};
  return chart;
}

// The position of each circle of the plot, with the legend's circle first.
std::vector<std::pair<double, double>> Circles(const std::string& svg) {
  std::vector<std::pair<double, double>> places;
  for (const auto& shape : ParseXml(svg).shapes) {
    if (shape.name == "circle") places.emplace_back(shape.Number("cx"), shape.Number("cy"));
  }
  return places;
}

ScatterChart Dots(const std::vector<std::pair<double, double>>& figures) {
  ScatterChart chart;
  chart.id = "dots";
  auto& group = chart.groups.emplace_back();
  for (const auto& [x, y] : figures) group.points.push_back({Exactly(x), Exactly(y), "", "", false, ""});
  return chart;
}

TEST(ScatterChart, IsReadableInEveryRoom) {
  for (const svg::Room& room : {svg::kWide, svg::kMedium, svg::kNarrow}) {
    ExpectReadable(RenderScatterChart(SampleScatter(), room));
    ScatterChart log = SampleScatter();
    log.x.log = log.y.log = true;
    ExpectReadable(RenderScatterChart(log, room));
  }
}

TEST(ScatterChart, NamesBothAxesWithTheirUnitsAndDrawsIntervalsBothWays) {
  const std::string svg = RenderScatterChart(SampleScatter(), svg::kWide);
  EXPECT_THAT(svg, HasSubstr(">Peak memory, MB</text>"));
  EXPECT_THAT(svg, HasSubstr(">tokens/s</text>"));
  EXPECT_THAT(svg, HasSubstr("class=\"through\""));
  EXPECT_THAT(svg, HasSubstr("v8M")) << "the end of a lying interval";
  EXPECT_THAT(svg, HasSubstr("l4 -6l4 6")) << "an interval that is far longer than figures are apart is cut";
  EXPECT_THAT(svg, HasSubstr("<title>out of memory</title></path>"));
}

TEST(ScatterChart, MarksStandWhereTheirFiguresAre) {
  const auto linear = Circles(RenderScatterChart(Dots({{1, 10}, {2, 30}, {3, 20}}), svg::kWide));
  ASSERT_THAT(linear, SizeIs(3));
  EXPECT_NEAR(linear[1].first - linear[0].first, linear[2].first - linear[1].first, 0.2);
  EXPECT_NEAR(linear[0].second - linear[1].second, 2 * (linear[0].second - linear[2].second), 0.2);
  ScatterChart chart = Dots({{1, 10}, {10, 1000}, {100, 100}});
  chart.x.log = chart.y.log = true;
  const auto log = Circles(RenderScatterChart(chart, svg::kWide));
  ASSERT_THAT(log, SizeIs(3));
  EXPECT_NEAR(log[1].first - log[0].first, log[2].first - log[1].first, 0.2);
  EXPECT_NEAR(log[0].second - log[1].second, 2 * (log[0].second - log[2].second), 0.2);
}

TEST(ScatterChart, DrawsOneMarkAndManyAtOnePlace) {
  for (const auto& figures : std::vector<std::vector<std::pair<double, double>>>{
           {{5, 0}}, {{0, 0}, {0, 0}}, {{1e-9, 1e12}, {1e-9, 1e12}, {-3, -1e12}}}) {
    ExpectReadable(RenderScatterChart(Dots(figures), svg::kNarrow));
  }
}

TEST(ScatterChart, ALabelThatWouldLieOverSomethingIsLeftToThePointer) {
  ScatterChart crowd = Dots({});
  for (int i = 0; i < 40; ++i) {
    const double value = 1 + 0.001 * i;
    crowd.groups[0].points.push_back({Exactly(value), Exactly(value), fmt::format("mark {}", i), "", false, ""});
  }
  crowd.groups[0].points.push_back({Exactly(9), Exactly(9), "alone", "", false, ""});
  const std::string svg = RenderScatterChart(crowd, svg::kMedium);
  ExpectReadable(svg);
  EXPECT_THAT(svg, HasSubstr(">alone</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">mark 20</text>")));
}

class ScatterOfRows : public testing::Test {
 protected:
  ScatterOfRows() {
    for (const auto& [name, label, style] : {std::tuple{"policy", "Policy", ValueStyle::kText},
                                             {"peak", "Peak memory", ValueStyle::kBytes},
                                             {"speed", "Throughput", ValueStyle::kCount}}) {
      ReportColumn& column = report_.columns.emplace_back();
      column.name = name;
      column.label = label;
      column.style = style;
    }
    chart_.title = "Trade";
    chart_.style = ValueStyle::kCount;
    chart_.axis = "tokens/s";
    chart_.label = "name";
    chart_.kind = ChartScatter{"policy", "peak", "speed", "best"};
    table_.columns = {"panel", "failure", "provenance", "emulated",   "policy",  "peak",        "speed",  "best",
                      "name",  "trainer", "speed_low",  "speed_high", "version", "environment", "command"};
  }
  std::vector<Cell>& Add(const std::string& policy, Cell peak, Cell speed, int64_t best = 0) {
    table_.rows.push_back({"p", Cell(), "measured", int64_t{0}, policy, std::move(peak), std::move(speed), best,
                           fmt::format("run {}", table_.rows.size()), Cell(), Cell(), Cell(), Cell(), Cell(), Cell()});
    return table_.rows.back();
  }
  ScatterChart Make() const {
    const Rows rows(report_, table_);
    return MakeScatterChart(report_, chart_, rows, MakePanels(rows).at(0).rows, "s");
  }

  Report report_;
  ReportChart chart_;
  Table table_;
};

TEST_F(ScatterOfRows, RunsWithTheSameTextLookAlikeAndHaveTheIntervalsOfTheAnswer) {
  auto& first = Add("none", int64_t{4'000}, 100.0, 1);
  first[10] = 90.0;
  first[11] = 110.0;
  Add("full", int64_t{1'000}, 50.0, 1);
  Add("none", int64_t{2'000}, 60.0);
  Add("none", {}, 70.0);
  Add("full", int64_t{9'000}, {})[1] = "out of memory";
  Add("full", int64_t{3'000}, 40.0)[2] = "predicted";
  const ScatterChart chart = Make();
  EXPECT_EQ(chart.x.name, "Peak memory");
  EXPECT_EQ(chart.x.scale, AxisScale::kBytes);
  std::vector<std::string> legends;
  for (const ScatterGroup& group : chart.groups) legends.push_back(group.legend);
  EXPECT_THAT(legends, ElementsAre("none", "full", "full, failed", "full, predicted"));
  ASSERT_THAT(chart.groups[0].points, SizeIs(2)) << "a run without a figure has no mark";
  EXPECT_EQ(chart.groups[0].points[0].y.low, 90);
  EXPECT_TRUE(chart.groups[0].points[0].on_line);
  EXPECT_FALSE(chart.groups[0].points[1].on_line);
  EXPECT_EQ(chart.groups[2].points[0].failure, "out of memory");
  EXPECT_EQ(chart.groups[2].colour, chart.groups[1].colour);
  EXPECT_TRUE(chart.groups[3].hollow);
  EXPECT_THAT(chart.description, HasSubstr("run 1: 50 at 1.00 kB."));
}

TEST_F(ScatterOfRows, ALogarithmHasNoPlaceForZero) {
  std::get<ChartScatter>(chart_.kind).log = true;
  Add("none", int64_t{4'000}, 0.0);
  EXPECT_THAT(Make().groups, IsEmpty());
  Add("none", int64_t{4'000}, 3.0);
  ASSERT_THAT(Make().groups, SizeIs(1));
  EXPECT_THAT(Make().groups[0].points, SizeIs(1));
}

TEST_F(ScatterOfRows, IfThereAreManyRunsThoseOnTheLineAreDrawn) {
  for (size_t i = 0; i < 2 * kMaxMarks; ++i) Add("none", static_cast<int64_t>(i), 1.0);
  Add("none", int64_t{7}, 9.0, 1);
  const ScatterChart chart = Make();
  ASSERT_THAT(chart.groups, SizeIs(1));
  EXPECT_THAT(chart.groups[0].points, SizeIs(kMaxMarks));
  EXPECT_TRUE(chart.groups[0].points[0].on_line);
}

TEST(ScatterChart, IsReadFromAReportAndMissingKeysAreReported) {
  TempDir dir;
  const std::filesystem::path folder = dir / "trade";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "query.sql") << "SELECT 1";
  const auto load = [&](const std::string& scatter) {
    std::ofstream(folder / "report.yaml") << "version: 1\ntitle: T\ncolumns: [{name: a, label: A}]\n"
                                          << "charts: [{id: c, title: C, label: a, scatter: " << scatter << "}]\n";
    return LoadReportFolder(folder);
  };
  const Report report = load("{by: a, x: b, y: c, x_scale: log, through: d}");
  ASSERT_TRUE(std::holds_alternative<ChartScatter>(report.charts.at(0).kind));
  EXPECT_TRUE(report.charts[0].as<ChartScatter>().log_x);
  EXPECT_FALSE(report.charts[0].as<ChartScatter>().log);
  EXPECT_EQ(report.charts[0].as<ChartScatter>().through, "d");
  try {
    load("{by: a, x: b}");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'y' is missing"));
  }
  try {
    load("{by: a, x: b, y: c}, bars: [{label: x, column: a}]");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'cells' or 'scatter'"));
  }
}

}  // namespace
}  // namespace ridgeline::report
