// Charts as a reader sees them: well-formed, inside their frame, no overlapping text, correct heights.
#include "report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "tests/report/readable.h"
#include "tests/report/xml.h"

namespace ridgeline::report {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

Bar Solid(double value) { return {{{value, 0, ""}}, Fill::kSolid, false, "a bar"}; }

// `count` slots in clusters of three, two bars each.
BarChart Sample(int count) {
  BarChart chart;
  chart.id = "sample-1";
  chart.title = "Throughput";
  chart.description = "All of it in words.";
  chart.axis = "tokens/s";
  chart.legend = {{"steady", 0, Fill::kSolid, false, false}, {"cold", 0, Fill::kSolid, true, false}};
  for (int i = 0; i < count; ++i) {
    Slot slot;
    slot.label = i % 3 == 0 ? "none" : i % 3 == 1 ? "selective" : "full/16";
    slot.cluster = "batch " + std::to_string(1 << (i / 3));
    slot.title = slot.label + ", " + slot.cluster;
    slot.bars = {Solid(9000.0 + 1234.5 * i), Solid(8000.0 + 1000 * i)};
    chart.slots.push_back(slot);
  }
  return chart;
}

class BarsTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Counts, BarsTest, testing::Range(1, 41));

TEST_P(BarsTest, NothingOverlapsOrLeavesTheFrame) {
  for (const svg::Room& room : {svg::kWide, svg::kMedium, svg::kNarrow}) {
    ExpectReadable(RenderBarChart(Sample(GetParam()), room));
  }
  BarChart chart = Sample(GetParam());
  chart.scale = AxisScale::kBytes;
  for (size_t i = 0; i < chart.slots.size(); ++i) {
    Slot& slot = chart.slots[i];
    slot.bars[0].parts = {{4e8, 0, ""}, {1e9 + 1e8 * static_cast<double>(i), 1, ""}, {1e6, 2, ""}};
    slot.bars[1] = Solid(1.9e9 + 1e8 * static_cast<double>(i));
    slot.note = i % 4 == 0 ? "predicted, emulated" : "";
    if (i % 5 == 3) {
      slot.bars.clear();
      slot.failure = "predicted out of memory";
      slot.wanted = i % 2 == 0 ? 3.02e10 : 1.1e9;
      slot.wanted_text = "30.2 GB";
    }
  }
  chart.legend.push_back({"predicted", 7, Fill::kHatched, false, false});
  chart.legend.push_back({"wanted, did not fit", 0, Fill::kSolid, false, true});
  for (const svg::Room& room : {svg::kWide, svg::kMedium, svg::kNarrow}) ExpectReadable(RenderBarChart(chart, room));
}

// The drawing's width and height.
std::pair<double, double> SizeOf(const std::string& svg) {
  std::pair<double, double> size;
  EXPECT_EQ(std::sscanf(svg.c_str() + svg.find("viewBox"), "viewBox=\"0 0 %lf %lf\"", &size.first, &size.second), 2);
  return size;
}

TEST(Chart, IsDrawnForItsRoomAndNotShrunk) {
  for (const int slots : {5, 12, 40}) {
    const auto [wide, wide_height] = SizeOf(RenderBarChart(Sample(slots), svg::kWide));
    const auto [narrow, narrow_height] = SizeOf(RenderBarChart(Sample(slots), svg::kNarrow));
    EXPECT_LE(narrow, svg::kNarrow.width) << slots;
    EXPECT_GT(wide, 0.85 * svg::kWide.width) << slots << ": the room is used";
    EXPECT_LE(wide, svg::kWide.width) << slots;
    EXPECT_GT(narrow_height, wide_height) << slots << ": what does not fit beside goes below";
  }
}

TEST(Chart, RowsAreEven) {
  BarChart chart = Sample(8);
  for (Slot& slot : chart.slots) slot.cluster.clear();
  std::map<double, int> labels;  // by height
  for (const auto& shape : ParseXml(RenderBarChart(chart, svg::kNarrow)).shapes) {
    if (shape.name == "text" && (shape.text == "none" || shape.text == "selective" || shape.text == "full/16")) {
      ++labels[shape.Number("y")];
    }
  }
  ASSERT_GT(labels.size(), 1U);
  for (const auto& [y, count] : labels) EXPECT_GE(count, labels.begin()->second - 1) << y;
}

TEST(Chart, AnErrorBarIsInsideTheFrameAndUnderItsNumber) {
  BarChart chart = Sample(2);
  const std::string plain = RenderBarChart(chart, svg::kWide);
  chart.slots[0].bars[0].low = 8500;
  chart.slots[0].bars[0].high = 9500;
  const std::string drawn = RenderBarChart(chart, svg::kWide);
  ExpectReadable(drawn);
  const auto lines = [](const std::string& text) {
    size_t count = 0;
    for (size_t at = text.find("<line"); at != std::string::npos; at = text.find("<line", at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(lines(drawn), lines(plain) + 3);
  chart.slots[0].bars[0].high = 14'400;  // beyond every bar: the axis reaches it
  const std::string high = RenderBarChart(chart, svg::kWide);
  ExpectReadable(high);
  chart.slots[0].bars[0].high = 14'400'000;  // beyond the axis: an arrowhead
  const std::string cut = RenderBarChart(chart, svg::kWide);
  ExpectReadable(cut);
  EXPECT_EQ(lines(cut), lines(high) + 1);
}

TEST(Chart, HeightsAreInProportion) {
  BarChart chart = Sample(2);
  chart.slots[0].bars = {Solid(250)};
  chart.slots[1].bars = {Solid(1000)};
  const Elements elements = ParseXml(RenderBarChart(chart, svg::kMedium));
  std::vector<double> heights;
  for (const auto& shape : elements.shapes) {
    if (shape.name == "rect" && shape.Attribute("rx").empty()) heights.push_back(shape.Number("height"));
  }
  ASSERT_THAT(heights, SizeIs(2));
  EXPECT_NEAR(heights[1] / heights[0], 4, 0.01);
}

TEST(Chart, AStackIsAsHighAsItsSum) {
  BarChart chart = Sample(1);
  chart.slots[0].bars = {{{{300, 0, "a"}, {500, 1, "b"}, {200, 2, "c"}}, Fill::kSolid, false, "stack"}, Solid(1000)};
  const Elements elements = ParseXml(RenderBarChart(chart, svg::kMedium));
  std::vector<double> tops;
  std::vector<std::string> labels;
  for (const auto& shape : elements.shapes) {
    if (shape.name == "rect" && shape.Attribute("rx").empty()) tops.push_back(shape.Number("y"));
    if (shape.name == "text" && shape.text == "1.00K" && shape.Attribute("text-anchor") == "middle") {
      labels.push_back(shape.text);
    }
  }
  ASSERT_THAT(tops, SizeIs(4));
  EXPECT_EQ(tops[2], tops[3]);
  EXPECT_THAT(labels, SizeIs(2));
}

TEST(Chart, TellsProvenanceByItsFill) {
  BarChart chart = Sample(2);
  chart.slots[0].bars[0].fill = Fill::kHatched;
  chart.slots[1].bars[0].fill = Fill::kDotted;
  const std::string svg = RenderBarChart(chart, svg::kMedium);
  EXPECT_THAT(svg, HasSubstr("fill=\"url(#sample-1-hatch0)\""));
  EXPECT_THAT(svg, HasSubstr("fill=\"url(#sample-1-dots0)\""));
  const Elements elements = ParseXml(svg);
  EXPECT_THAT(elements.ids, Contains("sample-1-hatch0"));
  EXPECT_THAT(elements.ids, Contains("sample-1-dots0"));
  EXPECT_THAT(RenderBarChart(Sample(2), svg::kMedium), Not(HasSubstr("<pattern")));
}

TEST(Chart, AFailureSaysWhatItWantedEvenBeyondTheAxis) {
  BarChart chart = Sample(2);
  chart.slots[1].bars.clear();
  chart.slots[1].failure = "out of memory";
  chart.slots[1].wanted = 1e9;
  chart.slots[1].wanted_text = "1.00 GB";
  const std::string svg = RenderBarChart(chart, svg::kMedium);
  EXPECT_THAT(svg, HasSubstr("\xE2\x86\x91 1.00 GB"));
  EXPECT_THAT(svg, HasSubstr("memory</text>"));
  // The run's own bar is not flattened by the failure.
  EXPECT_THAT(svg, Not(HasSubstr("M tokens")));
  for (const auto& shape : ParseXml(svg).shapes) {
    if (shape.name == "rect" && shape.Attribute("rx").empty()) {
      EXPECT_GT(shape.Number("height"), 50);
    }
  }
}

TEST(Chart, LongNamesAreCutAndStandInFullInTheTitle) {
  BarChart chart = Sample(2);
  chart.slots[0].label = std::string(500, 'x');
  chart.slots[0].cluster = std::string(500, 'y');
  chart.slots[0].title = chart.slots[0].label;
  const std::string svg = RenderBarChart(chart, svg::kMedium);
  ExpectReadable(svg);
  EXPECT_THAT(svg, HasSubstr("<title>" + std::string(500, 'x') + "</title>"));
  for (const auto& shape : ParseXml(svg).shapes) EXPECT_LT(shape.text.size(), 60U);
}

TEST(Chart, NamesAreEscaped) {
  BarChart chart = Sample(1);
  chart.title = chart.description = chart.axis = "<a>&\"'";
  chart.legend[0].label = "<a>&\"'";
  chart.slots[0].label = chart.slots[0].cluster = chart.slots[0].title = chart.slots[0].note = "<a>&\"'";
  chart.slots[0].bars[0].title = "<a>";
  const Elements elements = ParseXml(RenderBarChart(chart, svg::kMedium));
  EXPECT_EQ(elements.Count("a"), 0U);
}

TEST(Chart, SaysWhatItIsToAScreenReader) {
  const std::string svg = RenderBarChart(Sample(3), svg::kMedium);
  EXPECT_THAT(svg, HasSubstr("role=\"img\" aria-labelledby=\"sample-1-title sample-1-desc\""));
  EXPECT_THAT(svg, HasSubstr("<title id=\"sample-1-title\">Throughput</title>"));
  EXPECT_THAT(svg, HasSubstr("<desc id=\"sample-1-desc\">All of it in words.</desc>"));
}

TEST(Chart, NeedsNoStyleAndNoScript) {
  const Elements elements = ParseXml(RenderBarChart(Sample(12), svg::kMedium));
  EXPECT_THAT(elements.attributes, Not(Contains("style")));
  EXPECT_THAT(elements.attributes, Not(Contains("class")));
  for (const char* name : {"style", "script", "image", "use", "foreignObject"}) EXPECT_EQ(elements.Count(name), 0U);
}

TEST(Chart, OddValuesAreLeftOut) {
  BarChart chart = Sample(3);
  chart.slots[0].bars = {Solid(-5), Solid(std::numeric_limits<double>::quiet_NaN())};
  chart.slots[1].bars = {Solid(0), Solid(std::numeric_limits<double>::infinity())};
  chart.slots[2].bars = {};
  const std::string svg = RenderBarChart(chart, svg::kMedium);
  ExpectReadable(svg);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(Chart, AxisTicksAreRoundAndReachTheTop) {
  EXPECT_THAT(AxisTicks(1318), ElementsAre(0, 500, 1000, 1500));
  EXPECT_THAT(AxisTicks(51), ElementsAre(0, 20, 40, 60));
  EXPECT_THAT(AxisTicks(100), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(AxisTicks(0), ElementsAre(0, 1));
  EXPECT_THAT(AxisTicks(-3), ElementsAre(0, 1));
  for (double max = 1e-6; max < 1e15; max *= 1.37) {
    const std::vector<double> ticks = AxisTicks(max);
    EXPECT_GE(ticks.size(), 3U) << max;
    EXPECT_LE(ticks.size(), 7U) << max;
    EXPECT_GE(ticks.back(), max * (1 - 1e-9));
    EXPECT_LT(ticks[ticks.size() - 2], max);
  }
}

TEST(Chart, NumbersHaveThreeDigits) {
  EXPECT_EQ(ShortNumber(0), "0");
  EXPECT_EQ(ShortNumber(0.0123), "0.012");
  EXPECT_EQ(ShortNumber(0.00001), "1.0e-05");
  EXPECT_EQ(ShortNumber(1.5), "1.5");
  EXPECT_EQ(ShortNumber(9.996), "10");
  EXPECT_EQ(ShortNumber(22.84), "22.8");
  EXPECT_EQ(ShortNumber(99.96), "100");
  EXPECT_EQ(ShortNumber(1318.4), "1318");
}

}  // namespace
}  // namespace ridgeline::report
