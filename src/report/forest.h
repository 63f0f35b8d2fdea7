// Forest plots as SVG: a row a figure, with a dot where it is and a line over its interval. Knows rows and labels, not
// what they measure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/axis.h"
#include "report/svg.h"

namespace ridgeline {

struct ForestRow {
  std::string label;
  std::string text;  // the figure in words, beside the label
  double value = 0;  // REQUIRES: finite, where there is no failure
  double low = 0;    // the ends of its interval; equal to high: none
  double high = 0;
  std::string failure;  // in words, where there is no figure
  std::string title;    // what a pointer over it, or a screen reader, tells
  bool bad = false;     // drawn as failures are
};

struct ForestChart {
  std::string id;           // unique in the page; letters, digits and dashes
  std::string title;        // <title>
  std::string description;  // <desc>: the chart in words
  std::string axis;         // what the values are; bytes get their own unit
  AxisScale scale = AxisScale::kPlain;
  std::optional<double> at;  // a line across all rows: where nothing differs, such as 1
  std::vector<ForestRow> rows;
};

// One <svg>, presentation attributes only, as RenderBarChart's. It is as high as its rows need. An interval that is
// much longer than the figures are apart is cut at the axis, with the head of an arrow.
std::string RenderForestChart(const ForestChart& chart, const svg::Room& room);

}  // namespace ridgeline
