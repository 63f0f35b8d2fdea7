// Heat maps as SVG: a cell for each pair of two texts, the darker the larger its figure. Knows cells and labels, not
// what they measure.
#pragma once

#include <string>
#include <vector>

#include "report/svg.h"

namespace ridgeline {

struct HeatCell {
  size_t column = 0;  // places among the map's labels
  size_t row = 0;
  double share = 0;     // how dark, in [0, 1]
  std::string text;     // in the cell
  bool hollow = false;  // not measured: an outline in place of a fill
  std::string failure;  // in words: a cross in place of the text
  std::string title;    // what a pointer over it, or a screen reader, tells
};

struct HeatMap {
  std::string id;           // unique in the page; letters, digits and dashes
  std::string title;        // <title>
  std::string description;  // <desc>: the map in words
  std::string x_axis;
  std::string y_axis;
  std::vector<std::string> columns;  // labels, from the left
  std::vector<std::string> rows;     // labels, from the top
  std::vector<HeatCell> cells;       // at most one a place
};

// One <svg>, presentation attributes only, as RenderBarChart's. It is as high as its rows need.
std::string RenderHeatMap(const HeatMap& map, const svg::Room& room);

}  // namespace ridgeline
