// Forest plots and heat maps as a reader sees them, and how they are made from a panel's rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "report/page.h"
#include "tests/report/readable.h"
#include "tests/report/xml.h"

namespace ridgeline::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr svg::Room kRooms[] = {svg::kWide, svg::kMedium, svg::kNarrow};

ForestChart SampleForest() {
  ForestChart chart;
  chart.id = "ratio-1";
  chart.title = "Ratio";
  chart.description = "All of it in words.";
  chart.axis = "\xC3\x97";
  chart.at = 1;
  chart.rows = {{"night-1", "1.02 \xC3\x97 \xC2\xB1 0.01", 1.02, 1.01, 1.03, "", "night-1: 1.02"},
                {"a night with a name that goes on and on, as names do", "0.98 \xC3\x97", 0.98, 0.98, 0.98, "", "2"},
                {"night-3", "1.01 \xC3\x97 \xC2\xB1 7.30", 1.01, -6.29, 8.31, "", "night-3: 1.01"},
                {"night-4", "", 0, 0, 0, "out of memory", "night-4: out of memory"}};
  return chart;
}

TEST(ForestChart, IsReadableInEveryRoom) {
  for (const svg::Room& room : kRooms) ExpectReadable(RenderForestChart(SampleForest(), room));
}

// The position of each row's dot.
std::vector<double> DotsOf(const std::string& svg) {
  std::vector<double> dots;
  for (size_t at = svg.find("<circle cx=\""); at != std::string::npos; at = svg.find("<circle cx=\"", at + 1)) {
    dots.push_back(std::stod(svg.substr(at + 12)));
  }
  return dots;
}

TEST(ForestChart, FiguresStandInTheirOrderAndOneThatIsTheReferenceOnItsLine) {
  ForestChart chart = SampleForest();
  chart.rows.push_back({"same", "1 \xC3\x97", 1, 1, 1, "", "same"});
  const std::string svg = RenderForestChart(chart, svg::kWide);
  const std::vector<double> dots = DotsOf(svg);
  ASSERT_THAT(dots, SizeIs(4)) << "one that failed has none";
  EXPECT_LT(dots[1], dots[3]);
  EXPECT_LT(dots[3], dots[2]);
  EXPECT_LT(dots[2], dots[0]);
  EXPECT_THAT(svg, HasSubstr(fmt::format("<line x1=\"{:.1f}\"", dots[3])));
}

TEST(ForestChart, AnIntervalThatGoesFarBeyondTheFiguresIsCutWithAnArrow) {
  const std::string svg = RenderForestChart(SampleForest(), svg::kWide);
  EXPECT_THAT(svg, HasSubstr("l-6 4l6 4"));
  EXPECT_THAT(svg, HasSubstr("l6 4l-6 4"));
  EXPECT_THAT(svg, HasSubstr("out of memory</text>"));
}

TEST(ForestChart, DrawsFailuresAlone) {
  ForestChart chart = SampleForest();
  chart.rows = {chart.rows.back()};
  chart.at.reset();
  for (const svg::Room& room : kRooms) ExpectReadable(RenderForestChart(chart, room));
}

HeatMap SampleMap() {
  HeatMap map;
  map.id = "map-1";
  map.title = "Map";
  map.description = "All of it in words.";
  map.x_axis = "Batch";
  map.y_axis = "Sequence";
  map.columns = {"1", "2", "4"};
  map.rows = {"128", "64"};
  map.cells = {{0, 0, 0.5, "1.0 GB", false, "", "batch 1 of 128: 1.0 GB"},
               {1, 0, 1, "2.0 GB", true, "", "batch 2 of 128: 2.0 GB"},
               {2, 0, 0, "", false, "out of memory", "batch 4 of 128: out of memory"},
               {0, 1, 0.25, "0.5 GB", false, "", "batch 1 of 64: 0.5 GB"}};
  return map;
}

TEST(HeatMap, IsReadableInEveryRoom) {
  for (const svg::Room& room : kRooms) ExpectReadable(RenderHeatMap(SampleMap(), room));
}

TEST(HeatMap, IsDarkerForLargerValuesAndHollowWithoutAMeasurement) {
  std::vector<double> fills;
  size_t crosses = 0;
  for (const auto& shape : ParseXml(RenderHeatMap(SampleMap(), svg::kWide)).shapes) {
    if (shape.name == "rect") fills.push_back(shape.Number("fill-opacity"));
    if (shape.name == "path") ++crosses;
  }
  EXPECT_THAT(fills, ElementsAre(0.30, 0.0, 0.0, 0.20));
  EXPECT_EQ(crosses, 1);
}

class PlotsOfRows : public testing::Test {
 protected:
  PlotsOfRows() {
    for (const auto& [name, label] : {std::pair{"batch", "Batch"}, {"length", "Sequence"}, {"peak", "Peak memory"}}) {
      ReportColumn& column = report_.columns.emplace_back();
      column.name = name;
      column.label = label;
    }
    chart_.title = "Peak";
    chart_.style = ValueStyle::kBytes;
    chart_.label = "name";
    table_.columns = {"panel", "failure", "provenance", "emulated", "batch",       "length",
                      "peak",  "name",    "trainer",    "version",  "environment", "command"};
  }
  void Add(const std::string& failure, int64_t batch, int64_t length, Cell peak) {
    const Cell failed = failure.empty() ? Cell() : Cell(failure);
    table_.rows.push_back({"p", failed, "measured", int64_t{0}, batch, length, std::move(peak),
                           fmt::format("batch {} of {}", batch, length), Cell(), Cell(), Cell(), Cell()});
  }
  Rows Answer() const { return {report_, table_}; }

  Report report_;
  ReportChart chart_;
  Table table_;
};

TEST_F(PlotsOfRows, AMapHasTheSmallestBatchLeftAndTheLongestSequenceOnTop) {
  chart_.kind = ChartCells{"batch", "length", "peak"};
  Add("", 16, 128, int64_t{4'000'000'000});
  Add("", 2, 64, int64_t{1'000'000'000});
  Add("out of memory", 16, 1024, {});
  Add("out of memory", 2, 64, {});
  const Rows rows = Answer();
  const HeatMap map = MakeHeatMap(report_, chart_, rows, MakePanels(rows).at(0).rows, "m");
  EXPECT_THAT(map.columns, ElementsAre("2", "16"));
  EXPECT_THAT(map.rows, ElementsAre("1024", "128", "64"));
  ASSERT_THAT(map.cells, SizeIs(3)) << "two runs share a place, and the one that ended well has it";
  EXPECT_EQ(map.cells[0].failure, "out of memory");
  EXPECT_EQ(map.cells[1].share, 1);
  EXPECT_EQ(map.cells[2].share, 0.25);
  EXPECT_EQ(map.cells[2].text, "1.00 GB");
  EXPECT_EQ(map.x_axis, "Batch");
  EXPECT_THAT(map.description, HasSubstr("batch 16 of 1024: out of memory."));
}

TEST_F(PlotsOfRows, AForestLeavesOutRowsWithoutAFigure) {
  chart_.kind = ChartIntervals{"peak", {}};
  Add("", 1, 64, {});
  Add("", 2, 64, int64_t{5});
  Add("crashed", 4, 64, {});
  const Rows rows = Answer();
  const ForestChart forest = MakeForestChart(report_, chart_, rows, MakePanels(rows).at(0).rows, "f");
  ASSERT_THAT(forest.rows, SizeIs(2));
  EXPECT_EQ(forest.rows[0].label, "batch 2 of 64");
  EXPECT_EQ(forest.rows[1].failure, "crashed");
  table_.rows.erase(table_.rows.begin() + 1);
  const Rows none = Answer();
  EXPECT_THAT(MakeForestChart(report_, chart_, none, MakePanels(none).at(0).rows, "f").rows, IsEmpty());
}

}  // namespace
}  // namespace ridgeline::report
