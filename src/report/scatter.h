// Scatter plots as SVG: a mark where two figures of a run meet, with the interval of each. Knows marks and labels, not
// what they measure.
#pragma once

#include <string>
#include <vector>

#include "report/axis.h"
#include "report/svg.h"

namespace ridgeline::report {

// A figure and the ends of its interval; if they are equal, it has none.
struct ScatterFigure {
  double value = 0;  // REQUIRES: finite
  double low = 0;
  double high = 0;
};

struct ScatterPoint {
  ScatterFigure x;
  ScatterFigure y;
  std::string label;     // beside the mark, if there is room
  std::string title;     // text for a pointer over it, or a screen reader
  bool on_line = false;  // a line connects all such points, from left to right
  std::string failure;   // in words: a cross at the bottom, because there is no y
};

struct ScatterGroup {
  std::string legend;   // empty: no entry of its own
  size_t colour = 0;    // index into the palette and the shapes of marks, taken modulo their numbers
  bool hollow = false;  // not measured: outlines
  std::vector<ScatterPoint> points;
};

struct ScatterAxis {
  std::string name;  // what the values are: "tokens/s"; for bytes, their unit follows
  AxisScale scale = AxisScale::kPlain;
  bool log = false;  // REQUIRES: every value is positive
};

struct ScatterChart {
  std::string id;           // unique in the page; letters, digits and dashes
  std::string title;        // <title>
  std::string description;  // <desc>: the chart in words
  ScatterAxis x;
  ScatterAxis y;
  std::vector<ScatterGroup> groups;
};

// One <svg> with presentation attributes only, like RenderBarChart's. An interval that is much longer than the distance
// between the figures is cut at the axis, with an arrowhead.
std::string RenderScatterChart(const ScatterChart& chart, const svg::Room& room);

}  // namespace ridgeline::report
