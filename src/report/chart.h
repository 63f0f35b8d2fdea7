// Bar charts as SVG: grouped, stacked, with failures in their place. Knows bars and labels, not what they measure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/axis.h"
#include "report/svg.h"

namespace ridgeline::report {

// A bar's fill shows where its figure comes from.
enum class Fill { kSolid, kHatched, kDotted };

struct BarPart {
  double value = 0;
  size_t colour = 0;  // index into the palette, taken modulo its size
  std::string title;  // text under a pointer; empty: the bar's
};

struct Bar {
  std::vector<BarPart> parts;  // bottom up; empty: no value, nothing is drawn
  Fill fill = Fill::kSolid;
  bool light = false;  // the secondary figure of a pair
  std::string title;   // text for a pointer over it, or a screen reader
  double low = 0;      // the ends of its interval, drawn as an error bar; high 0: none
  double high = 0;
};

struct Slot {
  std::string label;        // under the bars
  std::string note;         // under the label: "predicted", "emulated"
  std::string cluster;      // neighbours with the same one share a bracket and this text
  std::string title;        // the slot in full words
  std::vector<Bar> bars;    // side by side
  std::string failure;      // in words, if there is nothing to draw
  double wanted = 0;        // for a failure: drawn as a dashed outline; 0: nothing
  std::string wanted_text;  // the same with its unit, for an outline that the axis cuts
};

struct LegendEntry {
  std::string label;
  size_t colour = 0;
  Fill fill = Fill::kSolid;
  bool light = false;
  bool outline = false;  // the dashed outline of what a failure needed
};

struct BarChart {
  std::string id;           // unique in the page; letters, digits and dashes
  std::string title;        // <title>
  std::string description;  // <desc>: the chart in words
  std::string axis;         // what the values are: "tokens/s"; bytes get their own unit
  AxisScale scale = AxisScale::kCount;
  std::vector<LegendEntry> legend;
  std::vector<Slot> slots;
};

// One <svg> with presentation attributes only, so that it looks the same with and without styles. Text takes the page's
// colour. If the room is too narrow, slots are wrapped into several rows with one common axis. If they are few, they
// spread out over it.
std::string RenderBarChart(const BarChart& chart, const svg::Room& room);

}  // namespace ridgeline::report
