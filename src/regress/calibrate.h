// How often the gate is wrong on a machine: the same programs measured again and again, taken for nights of which none
// is slower.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/table.h"

namespace ridgeline {

inline constexpr size_t kRunsOfNight = 3;

// So many runs of each point make so many nights: a first history, then each night's runs.
size_t RunsOfNights(size_t nights);

struct CalibratedCell {
  std::string spec;          // canonical JSON
  std::vector<double> runs;  // logarithms of median steady step times, in the order they were taken
  double sigma = 0;          // how runs differ, of the logarithm: robust, over all of them
  double detectable = 0;     // a slowdown of this share is a suspect in 80 of 100 nights
  int64_t nights = 0;
  int64_t suspects = 0;   // of the nights: each a false alarm of the screening
  int64_t verdicts = 0;   // runs taken for base and head in turns, as if a suspect were measured again
  int64_t confirmed = 0;  // of those, REGRESSED: a false alarm of the gate where the screening raises one, too
};

// Every night is screened by the runs before it. A verdict is of as many runs as two rounds take, which follow each
// other, and no run is of two.
CalibratedCell Calibrate(std::string spec, std::span<const double> runs);

// The largest share of false alarms that is not contradicted, at 95 %, by so many in so many trials (Clopper and
// Pearson, 1934). REQUIRES: 0 <= alarms <= trials, trials >= 1.
double MostFalseAlarms(int64_t alarms, int64_t trials);

// A row a point: for people.
Table CalibrationTable(std::span<const CalibratedCell> cells);
// The rates over all points, in a sentence or two.
std::string CalibrationWords(std::span<const CalibratedCell> cells);

}  // namespace ridgeline
