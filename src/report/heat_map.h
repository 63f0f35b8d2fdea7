// Heat maps as SVG: a cell for each pair of two texts, which is darker for a larger figure. Knows cells and labels, not
// what they measure.
#pragma once

#include <string>
#include <vector>

#include "report/svg.h"

namespace ridgeline::report {

struct HeatCell {
  size_t column = 0;  // indices into the map's labels
  size_t row = 0;
  double share = 0;     // how dark, in [0, 1]
  std::string text;     // in the cell
  bool hollow = false;  // not measured: an outline instead of a fill
  std::string failure;  // in words: a cross instead of the text
  std::string title;    // text for a pointer over it, or a screen reader
};

struct HeatMap {
  std::string id;           // unique in the page; letters, digits and dashes
  std::string title;        // <title>
  std::string description;  // <desc>: the map in words
  std::string x_axis;
  std::string y_axis;
  std::vector<std::string> columns;  // labels, from the left
  std::vector<std::string> rows;     // labels, from the top
  std::vector<HeatCell> cells;       // at most one per place
};

// One <svg> with presentation attributes only, like RenderBarChart's. It is as high as its rows need.
std::string RenderHeatMap(const HeatMap& map, const svg::Room& room);

}  // namespace ridgeline::report
