// The gate: what in head (a night, a commit) is worse than its baseline, finding by finding. A finding is one metric of
// one cell. The gate's overall answer, and how `ridgeline gate` ends, follow from all findings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regress/measurements.h"

namespace ridgeline::store {
class Store;
}  // namespace ridgeline::store

namespace ridgeline::regress {

// From good to bad.
enum class GateAnswer {
  kPass,
  kFails,         // it failed, and the baseline has no result either, so there is no reference
  kInconclusive,  // not decided yet
  kMissing,       // a result is missing because of the infrastructure; no pass
  kRegressed,
};
std::string_view GateAnswerName(GateAnswer answer);  // "PASS", "FAILS", "INCONCLUSIVE", "MISSING", "REGRESSED"

enum class GateMetric { kResult, kStepTime, kPinnedStepTime, kPeakMemory, kPinnedPeakMemory };
std::string_view GateMetricName(GateMetric metric);  // "step time", "step time since pinned", …
bool IsMemory(GateMetric metric);

// A change of one cell that a person accepted (nights.h). Its shares are the upper ends of 95 % intervals, so that
// noise does not make it a regression again. 0.05 is 5 %.
struct AcceptedChange {
  std::string point_id;
  std::string setup;
  std::string night;  // the night that found it
  std::string reason;
  std::string author;
  std::set<std::string> before;              // nights without it
  std::set<std::string> since;               // nights with it
  int64_t begun_unix_ns = 0;                 // measurements outside these nights have it from then on
  std::map<GateMetric, double> up;           // growth since the baseline, or since the pinned one
  std::optional<double> step_time_in_turns;  // growth since the base build
  std::optional<double> memory_in_turns;
  std::string base_build;  // the base build; empty: it was not measured in turns

  bool IsOf(const MeasuredCell& cell) const { return point_id == cell.point_id && setup == cell.setup; }
  bool IsBefore(const MeasuredRuns& runs) const;
};

// The part that was subtracted: the reference counts as if it had this change.
struct TakenChange {
  double change = 0;
  std::string night;
  std::string reason;
  std::string author;
};

struct GateFinding {
  GateMetric metric = GateMetric::kResult;
  GateAnswer answer = GateAnswer::kPass;
  std::string point;  // distinguishes it from the gate's other cells
  std::string point_id;
  std::string spec;  // canonical JSON
  std::string setup;
  std::string machine;
  std::string words;  // why it is no pass, and what would decide it; or other remarks

  // In ns or bytes. For memory, the runs are measurements.
  std::optional<double> base;
  std::optional<double> head;
  int64_t base_runs = 0;
  int64_t head_runs = 0;
  // As shares: 0.03 is 3 % more than base.
  std::optional<double> change;
  std::optional<double> low;  // its 95 % interval, if base and head were measured in turns
  std::optional<double> high;
  std::optional<double> detectable;  // the minimum detectable effect: a change of this much is found in 80 of 100 cases
  double tolerance = 0;              // a change of this size is tolerated
  // From head's first runs: how many independent steps would tell as much as the steps of the shortest run, and the
  // warm-up that was found beyond the sweep's.
  std::optional<double> effective_steps;
  int64_t warm_up_steps = 0;

  bool suspect = false;                  // is to be measured again
  bool faint = false;                    // no suspect, but worth measuring in turns with an older build
  std::optional<double> acceptable;      // if it is worse: the change, including what noise may add to it
  std::string base_build;                // the build with which it was measured in turns
  std::vector<AcceptedChange> accepted;  // the accepted changes of its cell
  std::vector<TakenChange> taken;        // those that were subtracted for this finding
  // For step time, if there are enough nights: the chance of the last nights' ranks if nothing changed, 1 if they are
  // no slower; and how much slower they are, as a share.
  std::optional<double> nights_chance;
  std::optional<double> nights_change;
  std::string since;         // the first campaign of the nights that decided together; empty: tonight decided
  int64_t further_runs = 0;  // for an inconclusive finding: runs that would decide it
};

// Whether it is measured again, in turns with an older build.
inline bool IsMeasuredAgain(const GateFinding& finding) { return finding.suspect || finding.faint; }

struct Gate {
  std::string head;  // the sides, as they were named
  std::string baseline;
  std::string pinned;                 // empty: none
  std::string sweep;                  // name of the sweep for which head was measured; empty: unknown
  std::vector<GateFinding> findings;  // the worst first
  GateAnswer answer = GateAnswer::kMissing;
};

// A result that head should have.
struct ExpectedCell {
  std::string point_id;
  std::string spec;
  std::string setup;
  std::string words;  // why it is missing, as far as the store knows
};

struct ExpectedCells {
  bool is_whole = false;  // all of a sweep's results; else only those that the infrastructure is known to have cost
  std::vector<ExpectedCell> cells;
};

// The results of the store's sweeps for this campaign, and those that ended for infrastructure reasons.
ExpectedCells ReadExpected(store::Store& store, const std::string& campaign);

struct GateSides {
  std::vector<MeasuredCell> head;
  std::vector<MeasuredCell> baseline;  // measurements that ended before head
  std::vector<MeasuredCell> recent;    // also those that the baseline leaves out because they looked worse
  std::vector<MeasuredCell> pinned;
  ExpectedCells expected;
  std::vector<AcceptedChange> accepted;
};

// The rules:
//
// - Step times are screened by the nightly rule (regress/nightly.h). A suspect is inconclusive until base and head have
//   been measured in turns (regress/confirm.h), or until the nights decide together, for as many of all cells as are no
//   accident. A large change has regressed at once.
// - Peak memory that grew is a suspect, too. It has regressed if the growth is large, or if the night before had it.
// - A failure is a regression if the baseline has a result.
// - Missing is a result that head should have and lacks: one that its sweep has, or else one that the baseline has.
// - If there is neither a measurement to compare nor a missing result, that is a finding without a point.
Gate MakeGate(const GateSides& sides);

// Makes a pass inconclusive if it could not detect a slowdown of this share. Call it before suspects are measured
// again.
void DemandDetection(Gate& gate, double share);

// Sorts the worst first, and sets the overall answer. Call it again after changes to findings.
void Conclude(Gate& gate);

// "1 regressed, 2 inconclusive, 5 pass".
std::string GateCounts(const Gate& gate);

// 0 pass, 1 regression, 3 infrastructure, 4 inconclusive.
int GateExitCode(GateAnswer answer);

}  // namespace ridgeline::regress
