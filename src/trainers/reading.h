// Applies a trainer's definition to the output of one run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "trainers/definition.h"
#include "trainers/ends.h"

namespace ridgeline::trainers {

// How many values of all series and medians of a log are kept in all. Later ones are only counted.
inline constexpr int64_t kMostValues = 1'000'000;

struct FoundMetric {
  const Metric* metric = nullptr;
  std::string unit;            // of the values: the metric's `kept`, or samples/s if a sample's length is unknown
  std::vector<double> values;  // all of a series (a loss may be NaN), otherwise one
  std::vector<double> all;     // all values of a time or rate in order, if `values` has only some
  std::vector<int64_t>
      steps;  // the step of each value of the series or of `all`; if they start over, so did the run. Or empty
  bool is_by_moment = false;              // lines without a step come from one rank, or from all ranks at one moment
  std::vector<int64_t> covers;            // how many steps each value covers; empty if unknown
  std::map<std::string, double> by_rank;  // each rank's value of a sum, if lines name ranks
  std::string text;                       // of a metric that is a text
  int64_t matches = 0;                    // lines with a value; for a result file 0, as the next two
  int64_t first_line = 0;
  int64_t last_line = 0;
  int64_t unread = 0;    // matching lines without a number that fits the unit
  int64_t left_out = 0;  // values beyond kMostValues, which were not kept
};

// The sentence that some matching lines hold no number.
std::string UnreadText(const FoundMetric& found);

// The content of a log. A metric that is not in `found` is unknown: neither 0 nor a guess. If several metrics have one
// name, the first that found something counts.
struct Reading {
  std::vector<FoundMetric> found;
  std::vector<std::string> missing;         // names of metrics, each once
  std::optional<LogEnd> end;                // nothing if the log does not tell
  std::optional<LogEnd> overruled;          // what words of the log tell, against exit code 0
  std::vector<std::string> contradictions;  // a sentence for each contradiction between figures
  std::vector<std::string> notes;           // other remarks, a sentence each
  int64_t lines = 0;
};

// The size of a log at a time.
struct Arrival {
  int64_t bytes = 0;
  int64_t at_ns = 0;
};

// How a log grew over time.
struct Arrivals {
  std::vector<Arrival> sizes;  // ascending in bytes and in time
  int64_t resolution_ns = 1'000'000;
};

struct ReadingOptions {
  std::optional<int> exit_code;
  std::optional<int64_t> tokens_per_step;                        // of all ranks; for comparing tokens/s with step times
  std::optional<int64_t> ranks;                                  // of the point
  std::optional<int64_t> steps;                                  // of the point, warm-up included
  std::function<std::optional<double>(std::string_view)> field;  // a number among the point's fields, by name
  const Arrivals* arrivals = nullptr;                            // null: not recorded
};

// The options for a log of a run of `spec`. REQUIRES: `trainer` and `spec` outlive them.
ReadingOptions OptionsFor(const Trainer& trainer, const RunSpec& spec);

// Whether a metric of the trainer needs the arrival times of lines.
bool TimesArrivals(const Trainer& trainer);

// Feeds a log's bytes to the given function, in parts of any size.
using LogSource = std::function<void(const std::function<void(std::string_view)>& feed)>;

// Reads a log of any length in bounded memory. REQUIRES: `trainer` outlives the reading. `result`: the JSON file of a
// trainer that writes its metrics into one; without it, those metrics are missing.
Reading ReadLog(const Trainer& trainer, const LogSource& log, const ReadingOptions& options,
                const std::optional<Json>& result = std::nullopt);

// Merges the readings of two logs of one run, such as of two ranks or nodes, metric by metric. A metric that one lacks
// comes from the other. Values of both are merged as those of two ranks: step by step the slowest time, the largest
// memory, the lowest rate, and the loss of `first`. Sums are added, each named rank once. The end is that of `first`,
// which must be the log of the lower rank. `options`: those of both readings.
Reading MergeReadings(const Trainer& trainer, Reading first, const Reading& other, const ReadingOptions& options);

// A reading as JSON, as a node sends it, and back. Throws Error(kInvalidInput) for a document of another trainer.
Json EncodeReading(const Trainer& trainer, const Reading& reading);
Reading DecodeReading(const Trainer& trainer, const Json& document);

}  // namespace ridgeline::trainers
