// A trainer's definition, applied to what one run of it printed.
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

namespace ridgeline {

// Values that are kept of all series and medians of a log together. What comes behind is counted, and not kept.
inline constexpr int64_t kMostValues = 1'000'000;

struct FoundMetric {
  const Metric* metric = nullptr;
  std::string unit;            // of the values: the metric's `kept`, or samples/s of whom nobody knows the length
  std::vector<double> values;  // of a series all, NaN where a loss is; else one
  std::vector<double> all;     // of a time or a rate of which not all are `values`: these, in order
  std::vector<int64_t>
      steps;  // of a series, or of `all`, whose every value has one; where they begin anew, so did the run
  bool is_by_moment = false;  // lines without a step are one rank's, or each rank's at once: none is of another's step
  std::vector<int64_t> covers;            // how many steps each value is of, where that is known; else empty
  std::map<std::string, double> by_rank;  // of a sum whose lines name ranks: each one's
  std::string text;                       // of a metric that is text
  int64_t matches = 0;                    // lines with a value; of a result's file 0, and so the next two
  int64_t first_line = 0;
  int64_t last_line = 0;
  int64_t unread = 0;    // lines that match, and have no number that the unit can have
  int64_t left_out = 0;  // values beyond kMostValues, which a series or a median lacks
};

// That some of its lines hold no number.
std::string UnreadText(const FoundMetric& found);

// What was found is `found`, and nothing else is known: what is missing is neither 0 nor a guess. Of metrics of one
// name the first that found something is there.
struct Reading {
  std::vector<FoundMetric> found;
  std::vector<std::string> missing;         // metrics' names, once each
  std::optional<LogEnd> end;                // nothing where nothing tells of it
  std::vector<std::string> contradictions;  // figures that cannot all be true, in a sentence each
  std::vector<std::string> notes;           // what else is to be said of the log, in a sentence each
  int64_t lines = 0;
};

// A log had so many bytes at this time.
struct Arrival {
  int64_t bytes = 0;
  int64_t at_ns = 0;
};

// How a log grew.
struct Arrivals {
  std::vector<Arrival> sizes;  // both of each grow
  int64_t resolution_ns = 1'000'000;
};

struct ReadingOptions {
  std::optional<int> exit_code;
  std::optional<int64_t> tokens_per_step;  // of all ranks: tokens/s are held against the step's time
  std::optional<int64_t> ranks;            // of the point
  std::optional<int64_t> steps;            // of the point, warm-up included
  std::function<std::optional<double>(std::string_view)> field;  // a number of the point's, by its name
  const Arrivals* arrivals = nullptr;                            // null: nobody saw it grow
};

// What reading a log of a run of `spec` is to know of it. `trainer` and `spec` must outlive it.
ReadingOptions OptionsFor(const Trainer& trainer, const RunSpec& spec);

// Whether lines of its log are timed as they arrive.
bool TimesArrivals(const Trainer& trainer);

// Gives a log's bytes to the function it is handed, in parts of any size.
using LogSource = std::function<void(const std::function<void(std::string_view)>& feed)>;

// Reads a log of any length in bounded memory. `trainer` must outlive what is returned. `result`: the file of a trainer
// that writes its metrics into one, as JSON; nothing: all of these are missing.
Reading ReadLog(const Trainer& trainer, const LogSource& log, const ReadingOptions& options,
                const std::optional<Json>& result = std::nullopt);

// One reading of two logs of one run, such as of two ranks or nodes, metric by metric: what one lacks is the other's.
// What both have is merged as values of two ranks are: step by step the slowest time, the largest memory, the lowest
// rate, the first's loss; sums are added, of ranks that have a name each rank once. The end is that of `first`, which
// is the log of the lower rank. `options` as they were for both, of all logs.
Reading MergeReadings(const Trainer& trainer, Reading first, const Reading& other, const ReadingOptions& options);

// A reading as a node sends it, and back. A document that is none of this trainer's throws Error(kInvalidInput).
Json EncodeReading(const Trainer& trainer, const Reading& reading);
Reading DecodeReading(const Trainer& trainer, const Json& document);

}  // namespace ridgeline
