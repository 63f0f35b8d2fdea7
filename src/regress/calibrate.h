// How often the gate is wrong on a machine: measures the same programs repeatedly, and treats the runs as nights of
// which none is slower.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/table.h"

namespace ridgeline {

inline constexpr size_t kRunsOfNight = 3;

// The runs of each point that this many nights need: a first history, then each night's runs.
size_t RunsOfNights(size_t nights);

struct CalibratedCell {
  std::string spec;          // canonical JSON
  std::vector<double> runs;  // logarithms of median steady step times, in the order they were taken
  double sigma = 0;          // how the logarithms of runs vary: robust, over all of them
  double detectable = 0;     // a slowdown of this share is a suspect in 80 of 100 nights
  int64_t nights = 0;
  int64_t suspects = 0;   // number of nights with a suspect: each is a false alarm of the screening
  int64_t verdicts = 0;   // comparisons of runs taken as base and head in turns, as for a suspect
  int64_t confirmed = 0;  // verdicts of REGRESSED: a false alarm of the gate if the screening raises one, too
};

// Screens every night by the runs before it. A verdict uses as many consecutive runs as two rounds take, and no run is
// part of two verdicts.
CalibratedCell Calibrate(std::string spec, std::span<const double> runs);

// The largest share of false alarms that this many alarms in this many trials do not contradict, at 95 % (Clopper and
// Pearson, 1934). REQUIRES: 0 <= alarms <= trials, trials >= 1.
double MostFalseAlarms(int64_t alarms, int64_t trials);

// One row per point, for people.
Table CalibrationTable(std::span<const CalibratedCell> cells);
// The rates over all points, in a sentence or two.
std::string CalibrationWords(std::span<const CalibratedCell> cells);

}  // namespace ridgeline
