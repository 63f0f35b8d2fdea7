// Corrects a trainer's predictions on a GPU by known step times of that trainer on that GPU.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "predict/device.h"
#include "predict/framework.h"
#include "predict/step_model.h"
#include "ridgeline/run.h"

namespace ridgeline::predict {

// A step whose time is known.
struct KnownRun {
  RunSpec spec;
  std::string gpu;     // as devices name them
  double step_ns = 0;  // above 0
  bool typed = false;  // a person typed it, so what it corrects is "assumed"
  std::string from;    // its source in words: a database, a log
};

// A line of a file of known runs, as `ridgeline trainers try --as-calibration` prints it: JSON.
std::string EncodeKnownRun(const KnownRun& run);
// Throws Error(kInvalidInput). `source` names the file and line.
KnownRun DecodeKnownRun(std::string_view line, const std::string& source);

// The uncorrected prediction weighs as much as so many runs. It is below 1, because published rows differ more between
// programs than within one (docs/prediction-accuracy.md).
inline constexpr double kRunsOfPrior = 0.5;
// Factors within which 90 of 100 rows lie after correction by one other row of their program and GPU, and by all
// others, if the rows have the same size. Framework::Spread widens them for other sizes.
inline constexpr double kSpreadOfOneRun = 1.16;
inline constexpr double kSpreadOfRuns = 1.11;
// The fewest runs that may fit shares.
inline constexpr size_t kFewestForShares = 5;
inline constexpr size_t kMostKnownRuns = 20;

// Corrects `framework` for this device, using the runs on its GPU that the framework can price. The correction is a
// factor. With at least kFewestForShares runs it is fitted shares instead, if they predict each run better from the
// others. Uses the last kMostKnownRuns runs. Returns false if no run applies. Calls `on_try`, if given, each time that
// it has priced a run, to show progress.
bool Correct(Framework& framework, const Device& device, const std::vector<KnownRun>& runs,
             const std::function<void()>& on_try = {});

using Share = double Efficiency::*;
// Returns the shares that minimize `error`, by a coordinate search whose steps shrink to 0.01. Deterministic. Shares
// that are not in `shares` stay as in `from`.
Efficiency FitShares(const std::function<double(const Efficiency&)>& error, std::span<const Share> shares,
                     const Efficiency& from);

}  // namespace ridgeline::predict
