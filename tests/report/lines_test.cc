// Line charts as a reader sees them: well-formed, inside their frame, no overlapping text, correct heights.
#include "report/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/report/readable.h"
#include "tests/report/xml.h"

namespace ridgeline::report {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

Curve Through(const std::vector<double>& values) {
  Curve curve;
  for (const double value : values) {
    curve.points.push_back({static_cast<double>(curve.points.size() + 1), value, value, value});
  }
  curve.title = curve.legend = "a curve";
  return curve;
}

LineChart Sample(const std::vector<Curve>& curves) {
  LineChart chart;
  chart.id = "sample-1";
  chart.title = "Loss";
  chart.description = "All of it in words.";
  chart.x_axis = "step";
  chart.y_axis = "loss";
  for (const Curve& curve : curves) {
    chart.x_max = std::max(chart.x_max, static_cast<double>(curve.points.size()));
    chart.lines.push_back(curve);
    chart.lines.back().colour = chart.lines.size() - 1;
  }
  return chart;
}

// The points of every path that is drawn as a curve: (x, y), down the page.
std::vector<std::vector<std::pair<double, double>>> Paths(const std::string& svg) {
  std::vector<std::vector<std::pair<double, double>>> paths;
  for (const auto& shape : ParseXml(svg).shapes) {
    if (shape.name != "path" || shape.attributes.size() != 1) continue;
    auto& points = paths.emplace_back();
    const std::string d = shape.Attribute("d");
    for (const char* at = d.c_str(); *at != '\0' && *at != 'h';) {
      double x = 0;
      double y = 0;
      int length = 0;
      EXPECT_EQ(std::sscanf(at + 1, "%lf %lf%n", &x, &y, &length), 2) << d;
      points.emplace_back(x, y);
      at += 1 + length;
    }
  }
  return paths;
}

TEST(LineChart, IsReadableWithAnyNumberOfLines) {
  for (size_t count = 1; count <= 16; ++count) {
    LineChart chart = Sample(std::vector<Curve>(count, Through({5.5, 3, 2.5, 2.25})));
    for (size_t i = 0; i < count; ++i) {
      chart.lines[i].legend = "a format, emulated " + std::to_string(i);
      chart.lines[i].stroke = static_cast<Stroke>(i % 3);
      for (LinePoint& point : chart.lines[i].points) {
        point.low -= 0.5;
        point.high += static_cast<double>(i);
      }
      if (i % 4 == 3) chart.lines[i].failure = "diverged";
    }
    for (const bool log : {false, true}) {
      chart.log = log;
      for (const svg::Room& room : {svg::kWide, svg::kMedium, svg::kNarrow}) {
        ExpectReadable(RenderLineChart(chart, room));
      }
    }
  }
}

TEST(LineChart, HeightsAreInProportion) {
  const auto paths = Paths(RenderLineChart(Sample({Through({0, 1, 4})}), svg::kMedium));
  ASSERT_THAT(paths, SizeIs(1));
  const auto& p = paths[0];
  ASSERT_THAT(p, SizeIs(3));
  EXPECT_NEAR((p[0].second - p[2].second) / (p[0].second - p[1].second), 4, 0.02);
  EXPECT_NEAR(p[2].first - p[1].first, p[1].first - p[0].first, 0.11);
}

TEST(LineChart, ALogarithmicAxisShowsRatios) {
  LineChart chart = Sample({Through({1, 10, 100, 0, -5, 10})});
  chart.log = true;
  const auto paths = Paths(RenderLineChart(chart, svg::kMedium));
  ASSERT_THAT(paths, SizeIs(2));  // values that are not positive are gaps
  const auto& p = paths[0];
  ASSERT_THAT(p, SizeIs(3));
  EXPECT_NEAR(p[0].second - p[1].second, p[1].second - p[2].second, 0.11);
}

TEST(LineChart, AMissingValueIsAGapAndNeverAZero) {
  const auto paths = Paths(RenderLineChart(Sample({Through({3, kNothing, 2, 1, kNothing})}), svg::kMedium));
  ASSERT_THAT(paths, SizeIs(2));
  EXPECT_THAT(paths[0], SizeIs(1));
  EXPECT_THAT(paths[1], SizeIs(2));
  const std::string nothing = RenderLineChart(Sample({Through({kNothing, kNothing})}), svg::kMedium);
  ExpectReadable(nothing);
  EXPECT_THAT(nothing, Not(HasSubstr("nan")));
  EXPECT_THAT(Paths(nothing), SizeIs(0));
}

TEST(LineChart, ABandIsDrawnWhereRunsDiffer) {
  LineChart chart = Sample({Through({3, 2, 1})});
  EXPECT_THAT(RenderLineChart(chart, svg::kMedium), Not(HasSubstr("fill-opacity=\"0.16\"")));
  for (LinePoint& point : chart.lines[0].points) point.high += 0.5;
  EXPECT_THAT(RenderLineChart(chart, svg::kMedium), HasSubstr("fill-opacity=\"0.16\""));
}

TEST(LineChart, AFailedRunIsMarkedAndDoesNotFlattenTheOthers) {
  const auto whole = Paths(RenderLineChart(Sample({Through({4, 3, 2, 1})}), svg::kMedium));
  LineChart chart = Sample({Through({4, 3, 2, 1}), Through({4, 1e30, kNothing})});
  chart.lines[1].failure = "seed 2: diverged";
  const std::string svg = RenderLineChart(chart, svg::kMedium);
  ExpectReadable(svg);
  EXPECT_EQ(Paths(svg).at(0).back().second - Paths(svg).at(0).front().second,
            whole.at(0).back().second - whole.at(0).front().second);
  EXPECT_THAT(svg, HasSubstr("<title>seed 2: diverged</title>"));
  // Alone, it determines the axis.
  chart.lines.erase(chart.lines.begin());
  EXPECT_THAT(RenderLineChart(chart, svg::kMedium), HasSubstr("e+30"));
}

TEST(LineChart, StrokesSayWhereFiguresComeFrom) {
  LineChart chart = Sample({Through({2, 1})});
  EXPECT_THAT(RenderLineChart(chart, svg::kMedium), Not(HasSubstr("stroke-dasharray")));
  chart.lines[0].stroke = Stroke::kDashed;
  const std::string dashed = RenderLineChart(chart, svg::kMedium);
  EXPECT_THAT(dashed, HasSubstr("stroke-dasharray=\"6 3\""));
  chart.lines[0].stroke = Stroke::kDotted;
  EXPECT_THAT(RenderLineChart(chart, svg::kMedium), HasSubstr("stroke-dasharray=\"1.5 3\""));
}

// Points at the given places, with the same values.
LineChart Over(const std::vector<double>& at) {
  LineChart chart;
  chart.id = "sample-1";
  chart.x_axis = "Batch";
  chart.y_axis = "tokens/s";
  chart.scale = AxisScale::kCount;
  chart.at = at;
  Curve curve;
  for (const double x : at) curve.points.push_back({x, 25e3, 25e3, 25e3});
  curve.legend = curve.title = "none";
  chart.lines = {curve};
  return chart;
}

std::vector<double> XsOf(const LineChart& chart) {
  std::vector<double> xs;
  const auto paths = Paths(RenderLineChart(chart, svg::kMedium));
  for (const auto& [x, y] : paths.at(0)) xs.push_back(x);
  return xs;
}

TEST(LineChart, PointsOverAColumnStandWhereItSays) {
  LineChart chart = Over({1, 2, 4, 16});
  std::vector<double> xs = XsOf(chart);
  ASSERT_THAT(xs, SizeIs(4));
  EXPECT_NEAR((xs[3] - xs[0]) / (xs[1] - xs[0]), 15, 0.1);
  chart.log_x = true;
  xs = XsOf(chart);
  EXPECT_NEAR((xs[3] - xs[0]) / (xs[1] - xs[0]), 4, 0.01) << "each doubling is as far";
}

TEST(LineChart, AnAxisOverAColumnHasATickAtEachPlaceAndBeginsAtZero) {
  const std::string svg = RenderLineChart(Over({1, 2, 4, 16}), svg::kMedium);
  ExpectReadable(svg);
  for (const char* tick : {">1</text>", ">2</text>", ">4</text>", ">16</text>", ">0</text>", ">25K</text>"}) {
    EXPECT_THAT(svg, HasSubstr(tick));
  }
  EXPECT_THAT(svg, HasSubstr("<circle"));
  // Places that are too close for their labels keep their ticks.
  std::vector<double> many;
  for (int i = 1; i <= 300; ++i) many.push_back(1000 + i);
  for (const svg::Room& room : {svg::kWide, svg::kMedium, svg::kNarrow}) {
    ExpectReadable(RenderLineChart(Over(many), room));
    ExpectReadable(RenderLineChart(Over({7}), room));
  }
}

TEST(LineChart, AnAxisOverPlacesMayHaveTheirNamesAndBeginWhereTheirFiguresDo) {
  LineChart chart = Sample({Through({1000, 1010, 990})});
  chart.at = {1, 2, 3};
  chart.at_labels = {"0123abc", "4567def", "89abcde"};
  chart.from_zero = false;
  const std::string svg = RenderLineChart(chart, svg::kWide);
  for (const char* label : {">0123abc<", ">4567def<", ">89abcde<", ">1005<", ">990<"})
    EXPECT_THAT(svg, HasSubstr(label));
  EXPECT_THAT(svg, Not(HasSubstr(">0<"))) << "a change of one in a hundred is seen";
}

TEST(LineChart, TicksThatAreNearHaveAsManyDigitsAsTellThemApart) {
  const std::string svg = RenderLineChart(Sample({Through({5.541, 5.559})}), svg::kWide);
  for (const char* label : {">5.54<", ">5.545<", ">5.55<"}) EXPECT_THAT(svg, HasSubstr(label));
}

TEST(LineChart, ARunWithoutAValueHasItsCrossAtTheBottom) {
  LineChart chart = Over({1, 2});
  Curve failed;
  failed.points = {{2, kNothing, kNothing, kNothing}};
  failed.failure = "none, batch 2: out of memory";
  chart.lines.push_back(failed);
  const std::string svg = RenderLineChart(chart, svg::kMedium);
  EXPECT_THAT(svg, HasSubstr("<title>none, batch 2: out of memory</title>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(LineChart, NeedsNoStyleAndNoScriptAndEscapesNames) {
  LineChart chart = Sample({Through({2, 1}), Through({2, 3})});
  chart.title = chart.description = chart.x_axis = chart.y_axis = "<a>&\"'";
  for (Curve& curve : chart.lines) curve.title = curve.legend = curve.failure = "<a>&\"'";
  const Elements elements = ParseXml(RenderLineChart(chart, svg::kMedium));
  EXPECT_EQ(elements.Count("a"), 0U);
  EXPECT_THAT(elements.attributes, Not(Contains("style")));
  EXPECT_THAT(elements.attributes, Not(Contains("class")));
  EXPECT_THAT(elements.ids, Contains("sample-1-plot"));
}

TEST(LineChart, LinearTicksAreRoundAndReachBothEnds) {
  EXPECT_THAT(LinearTicks(1.1, 5.5), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(LinearTicks(0, 300), ElementsAre(0, 100, 200, 300));
  for (double width = 1e-6; width < 1e9; width *= 1.7) {
    for (const double min : {-3 * width, -0.4 * width, 0.0, 0.7 * width, 12 * width}) {
      const std::vector<double> ticks = LinearTicks(min, min + width);
      EXPECT_GE(ticks.size(), 3U) << min << " " << width;
      EXPECT_LE(ticks.size(), 8U) << min << " " << width;
      EXPECT_LE(ticks.front(), min + 1e-6 * width);
      EXPECT_GE(ticks.back(), min + width * (1 - 1e-6));
      if (min < 0 && min + width > 0) {
        EXPECT_THAT(ticks, Contains(0.0));
      }
    }
  }
  for (const double value : {-2.0, 0.0, 1e-9, 7.0, 1e12}) {
    const std::vector<double> ticks = LinearTicks(value, value);
    EXPECT_LT(ticks.front(), value);
    EXPECT_GT(ticks.back(), value);
  }
}

TEST(LineChart, LogTicksReachBothEnds) {
  EXPECT_THAT(LogTicks(1.3, 4), ElementsAre(1, 2, 5));
  for (double min = 1e-9; min < 1e9; min *= 3.3) {
    for (double factor = 1; factor < 1e8; factor *= 2.3) {
      const std::vector<double> ticks = LogTicks(min, min * factor);
      EXPECT_GE(ticks.size(), 2U) << min << " " << factor;
      EXPECT_LE(ticks.size(), 11U) << min << " " << factor;
      EXPECT_LE(ticks.front(), min * (1 + 1e-6));
      EXPECT_GE(ticks.back(), min * factor * (1 - 1e-6)) << min;
    }
  }
}

TEST(LineChart, APointWithoutALineIsSeenBehindAnother) {
  LineChart chart = Sample({Through({10, 20}), Through({10})});
  chart.at = {1, 2};
  const std::string svg = RenderLineChart(chart, svg::kWide);
  EXPECT_THAT(svg, HasSubstr("class=\"alone\""));
  EXPECT_EQ(svg.find("class=\"alone\""), svg.rfind("class=\"alone\"")) << "a line's dots have none";
}

TEST(LineChart, OverAColumnEachPointHasAnErrorBarThatTheAxisDoesNotFollow) {
  LineChart chart = Sample({Through({10, 20})});
  chart.at = {1, 2};
  const std::string without = RenderLineChart(chart, svg::kWide);
  EXPECT_THAT(without, Not(HasSubstr("class=\"error\"")));
  chart.lines[0].points[0].low = 8;
  chart.lines[0].points[0].high = 12;
  chart.lines[0].points[1].low = 1;
  chart.lines[0].points[1].high = 9000;
  const std::string with = RenderLineChart(chart, svg::kWide);
  EXPECT_THAT(with, HasSubstr("class=\"error\""));
  EXPECT_THAT(with, Not(HasSubstr("9000")));
  EXPECT_THAT(with, HasSubstr("l4 -6l4 6")) << "what the axis cuts ends in the head of an arrow";
  EXPECT_EQ(with.find("l4 -6l4 6"), with.rfind("l4 -6l4 6"));
}

TEST(LineChart, ErrorBarsOfSeveralLinesStandBesideEachOther) {
  const auto bars_of = [](const std::string& svg) {
    std::vector<std::string> starts;  // "M50.0": where each begins
    for (size_t at = svg.find("class=\"error\" d=\""); at != std::string::npos;
         at = svg.find("class=\"error\"", at + 1)) {
      starts.push_back(svg.substr(at + 17, svg.find(' ', at + 17) - at - 17));
    }
    return starts;
  };
  LineChart chart = Sample({Through({10, 20}), Through({10, 20})});
  chart.at = {1, 2};
  for (Curve& line : chart.lines) {
    for (LinePoint& point : line.points) {
      point.low = 8;
      point.high = 22;
    }
  }
  const std::vector<std::string> two = bars_of(RenderLineChart(chart, svg::kNarrow));
  ASSERT_THAT(two, SizeIs(2));
  EXPECT_NE(two[0], two[1]) << "the later would hide the earlier";
  const std::string both = RenderLineChart(chart, svg::kNarrow);
  EXPECT_THAT(both, HasSubstr("cx=\"" + two[0].substr(1) + "\"")) << "its dot is on its bar";
}

LineChart OverNights(size_t nights) {
  LineChart chart = Sample({Curve{}});
  for (size_t i = 1; i <= nights; ++i) {
    const auto x = static_cast<double>(i);
    chart.at.push_back(x);
    chart.at_labels.push_back("night-2026-11-26-" + std::to_string(i));
    chart.lines[0].points.push_back({x, 100 + x, 99 + x, 101 + x, "night " + std::to_string(i)});
  }
  chart.from_zero = false;
  chart.marks = {{5, "3.1 % slower"}, {6, "2.0 % faster"}};
  return chart;
}

TEST(LineChart, SaysBelowItsTicksAndOverUprightLinesWhatItIsTold) {
  for (const svg::Room& room : {svg::kWide, svg::kMedium, svg::kNarrow}) {
    ExpectReadable(RenderLineChart(OverNights(40), room));
    ExpectReadable(RenderLineChart(OverNights(400), room));
  }
  const std::string svg = RenderLineChart(OverNights(40), svg::kWide);
  EXPECT_THAT(svg, HasSubstr(">night-2026-11-26-1</text>"));
  EXPECT_THAT(svg, HasSubstr(">3.1 % slower</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>2.0 % faster</title>")) << "there is no room for it beside its neighbour";
  EXPECT_THAT(svg, HasSubstr("<title>night 7</title></circle>")) << "a dot says what it is of";
}

TEST(LineChart, OverManyPlacesTheLineAloneIsDrawn) {
  EXPECT_THAT(RenderLineChart(OverNights(100), svg::kWide), HasSubstr("<circle"));
  const std::string many = RenderLineChart(OverNights(101), svg::kWide);
  EXPECT_THAT(many, Not(HasSubstr("<circle")));
  EXPECT_THAT(many, Not(HasSubstr("class=\"error\"")));
}

}  // namespace
}  // namespace ridgeline::report
