// What describes a trainer that does not speak our contract: a file of YAML, with patterns for what it prints
// (docs/trainers.md).
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"
#include "trainers/amount.h"
#include "trainers/invocation.h"
#include "trainers/patterns.h"

namespace ridgeline {

inline constexpr size_t kMaxTrainerBytes = size_t{256} << 10;  // of a file
inline constexpr size_t kMostMetrics = 256;                    // and as many ends

// What is taken of all values that were found.
enum class Take { kLast, kFirst, kMedian, kMax, kMin, kSum, kSeries };
std::string_view TakeName(Take take);

struct Metric {
  const LoggedFigure* figure = nullptr;
  const LoggedUnit* unit = nullptr;
  Take take = Take::kLast;
  std::optional<Pattern> pattern;  // of a line of the log
  std::string pointer;             // where there is none: RFC 6901, into the result's file
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
  std::string name;
  std::string about;
  std::string version;  // that the patterns were written after
  std::string tested;   // log: against what the program printed; source: against lines made after its format strings
  enum class Result { kPatterns, kFile, kContract };
  Result result = Result::kPatterns;  // where the metrics are: in its log, in a file of JSON, in a RunResult
  std::vector<Metric> metrics;        // of one name several: the first that finds something counts
  std::vector<PatternEnd> ends;
  std::map<int, EndRule> exit_codes;
  std::optional<Invocation> invocation;  // nothing: it cannot be started, and only its logs be read
  std::string text;                      // of the file
};

// Throws Error(kInvalidInput) with every fault at its line. `file` is named in them, and its stem is the trainer's
// name.
Trainer ParseTrainer(std::string_view text, const std::filesystem::path& file);
// Throws Error(kInfrastructure), too, where it cannot be read.
Trainer LoadTrainer(const std::filesystem::path& file);

}  // namespace ridgeline
