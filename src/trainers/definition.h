// What describes a trainer that does not speak our contract: a file of YAML, with patterns for what it prints
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

namespace ridgeline {

inline constexpr size_t kMaxTrainerBytes = size_t{256} << 10;  // of a file
inline constexpr size_t kMostMetrics = 256;                    // and as many ends

// What is taken of all values that were found.
enum class Take { kLast, kFirst, kMedian, kMax, kMin, kSum, kSeries, kArrival, kStamp };
std::string_view TakeName(Take take);
// A value a step, or of each few.
constexpr bool IsSeries(Take take) { return take == Take::kSeries || take == Take::kArrival || take == Take::kStamp; }

// A metric that no table has: its name and its unit are the definition's. `figure` and `unit` view the texts beside
// them.
struct OwnMetric {
  std::string name;
  std::string unit_text;
  LoggedFigure figure;
  LoggedUnit unit;
};

struct Metric {
  const LoggedFigure* figure = nullptr;
  const LoggedUnit* unit = nullptr;      // never null in a trainer that was read
  std::vector<const LoggedUnit*> units;  // that a line may name in its group `unit`; empty: it names none
  std::shared_ptr<const OwnMetric> own;  // null: it is of the table of figures
  Take take = Take::kLast;
  std::optional<Pattern> pattern;  // of a line of the log
  // Where there is none: RFC 6901, into a line that is a JSON object, or into the result's file; and where beside it
  // the step and the rank stand, which may be empty.
  std::string pointer;
  std::string step_pointer;
  std::string rank_pointer;
  std::string format;                 // of a stamp (trainers/stamp.h)
  std::vector<std::string> factors;   // numbers, and fields of the point, that a value is multiplied by
  std::optional<Expression> only_if;  // of points for which it holds; nothing: of all
  std::string every = "1";            // how many steps there are from line to line, where lines have no number
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
  std::string name;  // with its release, where it has one: torchtitan@0.2
  std::string about;
  std::string version;  // that the patterns were written after
  // log: against what the program printed; loader: its arguments or files were given to the release's own parser or
  // loader, which accepted them; source: against lines made after its format strings.
  std::string tested;
  std::string tested_on;  // YYYY-MM-DD; empty where the definition does not say it
  enum class Result { kPatterns, kFile, kContract };
  Result result = Result::kPatterns;  // where the metrics are: in its log, in a file of JSON, in a RunResult
  std::vector<Metric> metrics;        // of one name several: the first that finds something counts
  std::vector<PatternEnd> ends;
  std::map<int, EndRule> exit_codes;
  bool checks_parameters = true;  // whether what it prints of these must be the point's model
  bool checks_flops = true;
  std::optional<Invocation> invocation;  // nothing: it cannot be started, and only its logs be read
  std::string text;                      // of the file
};

// "torchtitan@0.2 (0.2.0)": what it is called, and the release that it was written after.
std::string DefinitionWords(const Trainer& trainer);

// Those of a step with this trainer (requirements.h), as run/step_figures.h has them of any.
int64_t DataParallelRanks(const Trainer& trainer, const RunSpec& spec);
int64_t TokensAStep(const Trainer& trainer, const RunSpec& spec);

// A number among a point's fields, or among what follows from them; nothing where there is none of that name.
std::optional<double> PointNumber(const Trainer& trainer, const RunSpec& spec, std::string_view name);

// Whether the metric's condition holds for the point. A figure that means something else for it is none of its result.
bool IsOfPoint(const Trainer& trainer, const Metric& metric, const RunSpec& spec);
std::string LeftOutText(const Metric& metric);

// Throws Error(kInvalidInput) with every fault at its line. `file` is named in them, and its stem is the trainer's
// name, or that name without its release or its last numbers.
Trainer ParseTrainer(std::string_view text, const std::filesystem::path& file);
// Throws Error(kInfrastructure), too, where it cannot be read.
Trainer LoadTrainer(const std::filesystem::path& file);

}  // namespace ridgeline
