// One run corrects the rest: what a trainer's steps took on a GPU says by how much all of its predictions there are
// off.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "predict/clock.h"
#include "predict/device.h"
#include "predict/framework.h"
#include "ridgeline/run.h"

namespace ridgeline {

// A step that somebody knows the time of.
struct KnownRun {
  RunSpec spec;
  std::string gpu;     // as devices name them
  double step_ns = 0;  // above 0
  bool typed = false;  // nothing shows it: what it corrects is assumed
  std::string from;    // in words: a database, a log
};

// A line of a file of known runs, as `ridgeline trainers try --as-calibration` prints it: JSON.
std::string EncodeKnownRun(const KnownRun& run);
// Throws Error(kInvalidInput). `source` names the file and line.
KnownRun DecodeKnownRun(std::string_view line, const std::string& source);

// What is expected without a run weighs as much as so many of them: rows of other programs differ by more between
// programs than within one (docs/prediction-accuracy.md).
inline constexpr double kRunsOfPrior = 0.5;
// Within these factors are 90 of 100 rows that one other row of their program and GPU corrected, and that all others
// did.
inline constexpr double kSpreadOfOneRun = 1.20;
inline constexpr double kSpreadOfRuns = 1.14;
// So many runs may teach shares.
inline constexpr size_t kFewestForShares = 5;
inline constexpr size_t kMostKnownRuns = 20;

// Corrects `framework` on this device by those runs that ran on its GPU and that the framework can price: by a factor,
// or from kFewestForShares runs on by shares, where each run is predicted better so from the others. Runs beyond
// kMostKnownRuns are left out, the first ones. False: none of the runs tells of it.
bool Correct(Framework& framework, const Device& device, const std::vector<KnownRun>& runs);

using Share = double Efficiency::*;
// The shares with which `error` is least: found one after another by smaller and smaller steps, of hundredths at last,
// the same each time. The others stay as `from` has them.
Efficiency FitShares(const std::function<double(const Efficiency&)>& error, std::span<const Share> shares,
                     const Efficiency& from);

}  // namespace ridgeline
