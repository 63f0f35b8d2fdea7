// Line charts as SVG: lines with bands around them over a common x. Knows lines and labels, not what they measure.
#pragma once

#include <string>
#include <vector>

#include "report/axis.h"
#include "report/svg.h"

namespace ridgeline {

enum class Stroke { kSolid, kDashed, kDotted };

struct LinePoint {
  double x = 0;
  double y = 0;    // not finite: the line has a gap here
  double low = 0;  // the band; equal to high: none
  double high = 0;
  std::string title = {};  // of a dot: what a pointer over it tells; empty: its line's
};

// Words over a line upright at x.
struct LineMark {
  double x = 0;
  std::string text;
};

struct Curve {
  std::vector<LinePoint> points;  // in order of x
  size_t colour = 0;              // index into the palette, taken modulo its size
  Stroke stroke = Stroke::kSolid;
  std::string title;   // what a pointer over it tells
  std::string legend;  // empty: it has no entry of its own
  // How it ended before its time, in words: drawn as a thin line with a cross where it ends. The axis does not make
  // room for such a line, which may go anywhere, unless there is no other. One without a value has its cross at the
  // bottom of the plot.
  std::string failure;
};

struct LineChart {
  std::string id;           // unique in the page; letters, digits and dashes
  std::string title;        // <title>
  std::string description;  // <desc>: the chart in words
  std::string x_axis;
  std::string y_axis;  // what the values are: "loss"; bytes get their own unit
  AxisScale scale = AxisScale::kPlain;
  double x_max = 0;  // the axis goes from 0 to this, where it has no `at`
  bool log = false;  // y; values that are not positive are gaps then
  // Where points stand: the figures of single runs, each drawn as a dot, over an axis with a tick at each of these, and
  // a y axis that begins at zero. Ascending; empty for curves of many steps.
  std::vector<double> at;
  std::vector<std::string> at_labels = {};  // below the ticks instead of their numbers; as many as `at`, or none
  bool from_zero = true;                    // false: the y axis of such points begins where they do
  bool log_x = false;                       // REQUIRES: every `at` is positive
  std::vector<LineMark> marks = {};         // REQUIRES: each x is one of `at`; ascending
  std::vector<Curve> lines;
};

// One <svg>, presentation attributes only, as RenderBarChart's. Over more than 100 places lines have no dots and
// no intervals: they would stand too close.
std::string RenderLineChart(const LineChart& chart, const svg::Room& room);

}  // namespace ridgeline
