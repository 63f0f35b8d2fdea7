// How often the gate is wrong on a machine. The same programs are measured again and again. Their runs are treated as
// nights of which none is slower. Runs of one session share what those of one night do, such as a boot or a node. Only
// several sessions show how that differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/table.h"
#include "regress/measurements.h"

namespace ridgeline::regress {

inline constexpr size_t kRunsOfNight = 3;

// The runs of each point that this many nights need: a first history, then each night's runs.
size_t RunsOfNights(size_t nights);

// The logarithms of median steady step times, in the order they were taken.
using SessionRuns = std::vector<double>;

struct CalibratedCell {
  std::string spec;     // canonical JSON
  std::string machine;  // the fingerprint
  int64_t runs = 0;
  int64_t sessions = 0;           // of at least kHistoryRuns runs; others do not count
  double sigma = 0;               // how runs of one session differ, of the logarithm: robust
  std::optional<double> between;  // how sessions differ: their standard deviation; nothing of one session
  double most_between = 0;        // what that is at most, at 95 %
  double detectable = 0;          // a slowdown of this share is a suspect in 80 of 100 nights
  int64_t nights = 0;
  int64_t suspects = 0;   // of the nights: each a false alarm of the screening
  int64_t apart = 0;      // of the sessions, each a night that the others are the baseline of: suspects
  int64_t verdicts = 0;   // runs taken for base and head in turns, as if a suspect were measured again
  int64_t confirmed = 0;  // verdicts that say REGRESSED: a false alarm of the gate, if the screening raises one, too
  std::set<std::string> builds;  // of the runs, as far as known
};

// The runs of its session before it screen each night. A verdict takes as many consecutive runs of one session as two
// rounds do. No run counts in two verdicts.
CalibratedCell Calibrate(std::string spec, std::span<const SessionRuns> sessions);

// The largest share of false alarms that this many alarms in this many trials do not contradict, at 95 % (Clopper and
// Pearson, 1934). REQUIRES: 0 <= alarms <= trials, trials >= 1.
double MostFalseAlarms(int64_t alarms, int64_t trials);

// A session's runs are of campaigns that begin with its name.
std::string NameOfSession(int64_t session);  // "session-001"

// Divides each cell's measurements into sessions, and calibrates by them.
std::vector<CalibratedCell> CalibrateCells(std::span<const MeasuredCell> cells);

// One row per point, for people.
Table CalibrationTable(std::span<const CalibratedCell> cells);
// One row per session: when, where and by which build.
Table SessionTable(std::span<const MeasuredCell> cells);
// The rates over all points, and what the sessions can tell, in a few sentences. Empty: too few runs for any.
std::string CalibrationWords(std::span<const CalibratedCell> cells);

}  // namespace ridgeline::regress
