// Forest plots as SVG: one row per figure, with a dot at its value and a line over its interval. Knows rows and labels,
// not what they measure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/axis.h"
#include "report/svg.h"

namespace ridgeline::report {

struct ForestRow {
  std::string label;
  std::string text;  // the figure in words, beside the label
  double value = 0;  // REQUIRES: finite, if there is no failure
  double low = 0;    // the ends of its interval; equal to high: none
  double high = 0;
  std::string failure;  // in words, if there is no figure
  std::string title;    // text for a pointer over it, or a screen reader
  bool bad = false;     // drawn as failures are
};

struct ForestChart {
  std::string id;           // unique in the page; letters, digits and dashes
  std::string title;        // <title>
  std::string description;  // <desc>: the chart in words
  std::string axis;         // what the values are; bytes get their own unit
  AxisScale scale = AxisScale::kPlain;
  std::optional<double> at;  // a line across all rows at the value of no difference, such as 1
  std::vector<ForestRow> rows;
};

// One <svg> with presentation attributes only, like RenderBarChart's. It is as high as its rows need. An interval that
// is much longer than the distance between the figures is cut at the axis, with an arrowhead.
std::string RenderForestChart(const ForestChart& chart, const svg::Room& room);

}  // namespace ridgeline::report
