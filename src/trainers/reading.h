// A trainer's definition, applied to what one run of it printed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
  std::vector<double> values;  // in the unit's `kept`; of a series all, NaN where a loss is; else one
  std::vector<int64_t> steps;  // of a series whose every value has one
  std::string text;            // of a metric that is text
  int64_t matches = 0;         // lines with a value; of a result's file 0, and so the next two
  int64_t first_line = 0;
  int64_t last_line = 0;
  int64_t unread = 0;    // lines that match, and have no number that the unit can have
  int64_t left_out = 0;  // values beyond kMostValues, which a series or a median lacks
};

// What was found is `found`, and nothing else is known: what is missing is neither 0 nor a guess. Of metrics of one
// name the first that found something is there.
struct Reading {
  std::vector<FoundMetric> found;
  std::vector<std::string> missing;         // metrics' names, once each
  std::optional<LogEnd> end;                // nothing where nothing tells of it
  std::vector<std::string> contradictions;  // figures that cannot all be true, in a sentence each
  int64_t lines = 0;
};

struct ReadingOptions {
  std::optional<int> exit_code;
  std::optional<int64_t> tokens_per_step;  // of all ranks: tokens/s are held against the step's time
};

// Gives a log's bytes to the function it is handed, in parts of any size.
using LogSource = std::function<void(const std::function<void(std::string_view)>& feed)>;

// Reads a log of any length in bounded memory. `trainer` must outlive what is returned. `result`: the file of a trainer
// that writes its metrics into one, as JSON; nothing: all of these are missing.
Reading ReadLog(const Trainer& trainer, const LogSource& log, const ReadingOptions& options,
                const std::optional<Json>& result = std::nullopt);

}  // namespace ridgeline
