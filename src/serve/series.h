// Charts of what runs took a step: of one run, or of several over each other.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ridgeline {

struct SeriesChart {
  std::string id;
  std::string title;
  std::string axis;
  double divisor = 1;  // of a value for one of the axis
};

// `series`: a name for each, empty where there is one alone, and its JSON array of numbers. Empty where none has two
// values that can be drawn.
std::string ChartOfSeries(const SeriesChart& chart, const std::vector<std::pair<std::string, std::string>>& series);

}  // namespace ridgeline
