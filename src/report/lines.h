// Line charts as SVG: lines with bands around them over a common x. Knows lines and labels, not what they measure.
#pragma once

#include <string>
#include <vector>

#include "report/axis.h"
#include "report/svg.h"

namespace ridgeline::report {

enum class Stroke { kSolid, kDashed, kDotted };

struct LinePoint {
  double x = 0;
  double y = 0;    // not finite: the line has a gap here
  double low = 0;  // the band; equal to high: none
  double high = 0;
  std::string title = {};  // a dot's text under a pointer; empty: its line's
};

// Words over a vertical line at x.
struct LineMark {
  double x = 0;
  std::string text;
};

struct Curve {
  std::vector<LinePoint> points;  // in order of x
  size_t colour = 0;              // index into the palette, taken modulo its size
  Stroke stroke = Stroke::kSolid;
  std::string title;   // text under a pointer
  std::string legend;  // empty: no entry of its own
  // How it ended early, in words. It is drawn as a thin line that ends with a cross. The axis does not make room for
  // such a line, which may go anywhere, unless there is no other. Without a value, its cross is at the bottom of the
  // plot.
  std::string failure;
};

struct LineChart {
  std::string id;           // unique in the page; letters, digits and dashes
  std::string title;        // <title>
  std::string description;  // <desc>: the chart in words
  std::string x_axis;
  std::string y_axis;  // what the values are: "loss"; bytes get their own unit
  AxisScale scale = AxisScale::kPlain;
  double x_max = 0;  // the axis's end, if it has no `at`; it begins at 0
  bool log = false;  // for y; values that are not positive are gaps then
  // The positions of points: the figures of single runs, each drawn as a dot. The axis has a tick at each of these, and
  // the y axis begins at zero. Ascending; empty for curves of many steps.
  std::vector<double> at;
  std::vector<std::string> at_labels = {};  // shown instead of the ticks' numbers; as many as `at`, or none
  bool from_zero = true;                    // false: the y axis of such points begins near the lowest
  bool log_x = false;                       // REQUIRES: every `at` is positive
  std::vector<LineMark> marks = {};         // REQUIRES: each x is one of `at`; ascending
  std::vector<Curve> lines;
};

// One <svg> with presentation attributes only, like RenderBarChart's. Over more than 100 places, lines have no dots and
// no intervals, because they would be too close.
std::string RenderLineChart(const LineChart& chart, const svg::Room& room);

}  // namespace ridgeline::report
