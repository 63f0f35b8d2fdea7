// Line charts as SVG: lines with bands around them over a common x. Knows lines and labels, not what they measure.
#pragma once

#include <string>
#include <vector>

namespace ridgeline {

enum class Stroke { kSolid, kDashed, kDotted };

struct LinePoint {
  double x = 0;
  double y = 0;    // not finite: the line has a gap here
  double low = 0;  // the band; equal to high: none
  double high = 0;
};

struct Curve {
  std::vector<LinePoint> points;  // in order of x
  size_t colour = 0;              // index into the palette, taken modulo its size
  Stroke stroke = Stroke::kSolid;
  std::string title;   // what a pointer over it tells
  std::string legend;  // empty: it has no entry of its own
  // How it ended before its time, in words: drawn as a thin line with a cross where it ends. The axis does not make
  // room for such a line, which may go anywhere, unless there is no other.
  std::string failure;
};

struct LineChart {
  std::string id;           // unique in the page; letters, digits and dashes
  std::string title;        // <title>
  std::string description;  // <desc>: the chart in words
  std::string x_axis;
  std::string y_axis;
  double x_max = 0;  // the axis goes from 0 to this
  bool log = false;  // y; values that are not positive are gaps then
  std::vector<Curve> lines;
};

// One <svg>, presentation attributes only, as RenderBarChart's.
std::string RenderLineChart(const LineChart& chart);

// Round steps over [min, max], 4 to 7 of them, the first and last at or beyond its ends.
std::vector<double> LinearTicks(double min, double max);

// 1, 2 and 5 times powers of ten, or powers of ten alone where those were too many; the first and last at or beyond the
// ends. REQUIRES: 0 < min <= max.
std::vector<double> LogTicks(double min, double max);

}  // namespace ridgeline
