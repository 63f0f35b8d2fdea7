// Proposes the metrics of a definition from a log of a trainer that no definition describes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainers/reading.h"

namespace ridgeline::trainers {

// What the user knows and a log often does not say. An empty answer: not known.
struct ProposalAnswers {
  std::string rates;   // rates without "per GPU" are of "all" ranks or of each "gpu"
  std::string memory;  // the figure that memory without a kind is: device_peak, …
  std::string gb;      // GB, MB and kB are powers of "1000" or of "1024"
};

struct ProposedMetric {
  std::string figure;
  std::string pattern;  // a regular expression or, with `is_pointer`, a JSON pointer
  bool is_pointer = false;
  std::string step_pointer;
  std::string unit;  // empty: none
  std::string take;
  std::string seen;      // the words beside the number, and a line that has them
  std::string question;  // what must be known before the metric counts; empty: it counts
};

struct Proposal {
  std::vector<ProposedMetric> metrics;  // in the order of the table of figures; at most one of a figure counts
  std::vector<std::string> notes;       // numbers that look like a figure and are none, a sentence each
};

// Finds the repeated lines with losses, times, rates and memory. If a log leaves open what a figure means, the figure
// becomes a question and does not count. Reads a log of any length in bounded memory.
Proposal ProposeMetrics(const LogSource& log, const ProposalAnswers& answers);

// The definition as a file. A metric with a question stands there as a comment. `command` may be empty.
std::string DefinitionText(std::string_view name, std::string_view log, const Proposal& proposal,
                           const std::vector<std::string>& command);

}  // namespace ridgeline::trainers
