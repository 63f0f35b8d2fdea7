// Charts of what runs took a step: of one run, or of several over each other.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "serve/markup.h"

namespace ridgeline {

// A name for each, empty where there is one alone, and its JSON array of numbers.
using NamedSeries = std::vector<std::pair<std::string, std::string>>;

// Their step times, of nanoseconds, and their losses; without a chart of which none has two values that can be drawn.
std::string StepCharts(const NamedSeries& step_ns, const NamedSeries& losses);

}  // namespace ridgeline
