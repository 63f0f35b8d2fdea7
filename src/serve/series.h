// Charts of the step times and losses of one run, or of several runs together.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "serve/markup.h"

namespace ridgeline::serve {

// A name for each series (empty for a single one), and its JSON array of numbers.
using NamedSeries = std::vector<std::pair<std::string, std::string>>;

// Charts of their step times, in nanoseconds, and of their losses. Omits a chart if no series has two values to draw.
std::string StepCharts(const NamedSeries& step_ns, const NamedSeries& losses);

}  // namespace ridgeline::serve
