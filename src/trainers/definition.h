// Definitions of trainers that do not keep our contract: YAML files with patterns for what the trainer prints
// (docs/trainer-definitions.md).
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"
#include "trainers/amount.h"
#include "trainers/expression.h"
#include "trainers/invocation.h"
#include "trainers/patterns.h"

namespace ridgeline::trainers {

inline constexpr size_t kMaxTrainerBytes = size_t{256} << 10;  // a file's
inline constexpr size_t kMostMetrics = 256;                    // and the most ends

// Which of all values found is taken.
enum class Take { kLast, kFirst, kMedian, kMax, kMin, kSum, kSeries, kArrival, kStamp };
std::string_view TakeName(Take take);
// Whether there is a value for each step or each few steps.
constexpr bool IsSeries(Take take) { return take == Take::kSeries || take == Take::kArrival || take == Take::kStamp; }

// A metric that is not in the table of figures: the definition gives its name and unit. `figure` and `unit` refer to
// the texts here.
struct OwnMetric {
  std::string name;
  std::string unit_text;
  LoggedFigure figure;
  LoggedUnit unit;
};

struct Metric {
  const LoggedFigure* figure = nullptr;
  const LoggedUnit* unit = nullptr;      // never null after reading
  std::vector<const LoggedUnit*> units;  // units that the group `unit` may name; empty: no such group
  std::shared_ptr<const OwnMetric> own;  // null: it is in the table of figures
  Take take = Take::kLast;
  std::optional<Pattern> pattern;  // for a line of the log
  // Without a pattern: JSON pointers (RFC 6901) to the value, the step and the rank, into a line that is a JSON object
  // or into the result's file. The last two may be empty.
  std::string pointer;
  std::string step_pointer;
  std::string rank_pointer;
  std::string format;                 // the stamp's (trainers/stamp.h)
  std::vector<std::string> factors;   // numbers and fields of the point by which values are multiplied
  std::optional<Expression> only_if;  // the metric counts only for points for which it holds
  std::string every = "1";            // steps from line to line, if lines have no step number
};

struct EndRule {
  RunEnd end;
  std::string hint;
};

struct PatternEnd {
  Pattern pattern;
  EndRule rule;
};

struct Trainer {
  std::string name;  // with its release, if it has one: torchtitan@0.2
  std::string about;
  std::string version;  // the release for which the patterns were written
  // log: checked against the program's output. loader: the release's own parser or loader accepted its arguments or
  // files. source: checked against lines made from the program's format strings.
  std::string tested;
  std::string tested_on;  // YYYY-MM-DD; may be empty
  enum class Result { kPatterns, kFile, kContract };
  Result result = Result::kPatterns;  // the metrics are in its log, in a JSON file, or in a RunResult
  std::vector<Metric> metrics;        // several may share a name; the first that finds something counts
  std::vector<PatternEnd> ends;
  std::map<int, EndRule> exit_codes;
  bool checks_parameters = true;  // whether printed parameters must match the point's model
  bool checks_flops = true;
  std::optional<Invocation> invocation;  // nothing: Ridgeline cannot start it, only read its logs
  std::string text;                      // the whole file
};

// "torchtitan@0.2 (0.2.0)": its name, and the release for which it was written.
std::string DefinitionWords(const Trainer& trainer);

// Like the functions of run/step_figures.h, but as this trainer splits its ranks (requirements.h).
int64_t DataParallelRanks(const Trainer& trainer, const RunSpec& spec);
int64_t TokensAStep(const Trainer& trainer, const RunSpec& spec);

// A number among a point's fields, or derived from them. Nothing if no number has that name.
std::optional<double> PointNumber(const Trainer& trainer, const RunSpec& spec, std::string_view name);

// Whether the metric's condition holds for the point. If not, the metric is not part of the point's result.
bool IsOfPoint(const Trainer& trainer, const Metric& metric, const RunSpec& spec);
std::string LeftOutText(const Metric& metric);

// Throws Error(kInvalidInput) with every fault at its line in `file`. The file's stem must be the trainer's name; it
// may lack the release or its last numbers.
Trainer ParseTrainer(std::string_view text, const std::filesystem::path& file);
// Also throws Error(kInfrastructure) if the file cannot be read.
Trainer LoadTrainer(const std::filesystem::path& file);

}  // namespace ridgeline::trainers
