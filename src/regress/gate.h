// The gate: what of head (a night, a commit) is worse than its baseline, finding by finding. A finding is one metric of
// one cell; what the gate says in whole, and how `ridgeline gate` ends, follow from all of them.
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

namespace ridgeline {

class Store;

// From good to bad.
enum class GateAnswer {
  kPass,
  kFails,         // it failed, and has no result in the baseline either: nothing to hold it to
  kInconclusive,  // nobody can say yet
  kMissing,       // there should be a result, and there is none: the infrastructure's, and no pass
  kRegressed,
};
std::string_view GateAnswerName(GateAnswer answer);  // "PASS", "FAILS", "INCONCLUSIVE", "MISSING", "REGRESSED"

enum class GateMetric { kResult, kStepTime, kPinnedStepTime, kPeakMemory, kPinnedPeakMemory };
std::string_view GateMetricName(GateMetric metric);  // "step time", "step time since pinned", …
bool IsMemory(GateMetric metric);

// A change of one cell that a person accepted (nights.h). Its shares are the upper ends of intervals of 95 %, so that
// noise makes no regression of it again. 0.05 is 5 %.
struct AcceptedChange {
  std::string point_id;
  std::string setup;
  std::string night;  // that found it
  std::string reason;
  std::string author;
  std::set<std::string> before;              // nights without it
  std::set<std::string> since;               // nights with it
  int64_t begun_unix_ns = 0;                 // what no such night measured has it from then on
  std::map<GateMetric, double> up;           // since the baseline, or since the pinned one
  std::optional<double> step_time_in_turns;  // since the base build
  std::optional<double> memory_in_turns;
  std::string base_build;  // which that is; empty: it was not measured in turns

  bool IsOf(const MeasuredCell& cell) const { return point_id == cell.point_id && setup == cell.setup; }
  bool IsBefore(const MeasuredRuns& runs) const;
};

// What of it was taken off: what it was held to counts as if it had this change.
struct TakenChange {
  double change = 0;
  std::string night;
  std::string reason;
  std::string author;
};

struct GateFinding {
  GateMetric metric = GateMetric::kResult;
  GateAnswer answer = GateAnswer::kPass;
  std::string point;  // what tells it from the gate's other cells
  std::string point_id;
  std::string spec;  // canonical JSON
  std::string setup;
  std::string machine;
  std::string words;  // why it is no pass, and what would decide; or what else is worth a word

  // In ns, or bytes; of memory the runs are measurements.
  std::optional<double> base;
  std::optional<double> head;
  int64_t base_runs = 0;
  int64_t head_runs = 0;
  // As shares: 0.03 is 3 % more than base.
  std::optional<double> change;
  std::optional<double> low;  // its interval of 95 %, where base and head were measured in turns
  std::optional<double> high;
  std::optional<double> detectable;  // the minimum detectable effect: a change of this much is found in 80 of 100 cases
  double tolerance = 0;              // a change of this much nobody minds
  // Of head's runs, as they were measured first: how many steps of the shortest tell as much as independent ones would,
  // and the warm-up that was found beyond the sweep's.
  std::optional<double> effective_steps;
  int64_t warm_up_steps = 0;

  bool suspect = false;                  // to be measured again
  bool faint = false;                    // no suspect, but worth turns with an older build
  std::optional<double> acceptable;      // of what is worse: the change, with what noise may add to it
  std::string base_build;                // with which it was measured in turns
  std::vector<AcceptedChange> accepted;  // of its cell
  std::vector<TakenChange> taken;        // of those, what this finding is without
  // Of step time, where there are enough nights: the chance of the last ones' ranks where nothing changed, 1 where they
  // are no slower; and how much they are, a share.
  std::optional<double> nights_chance;
  std::optional<double> nights_change;
  std::string since;         // the campaign of the first of the nights that decided together; empty: tonight decided
  int64_t further_runs = 0;  // of an inconclusive one: so many would decide
};

// In turns, with an older build.
inline bool IsMeasuredAgain(const GateFinding& finding) { return finding.suspect || finding.faint; }

struct Gate {
  std::string head;  // as they were named
  std::string baseline;
  std::string pinned;                 // empty: none
  std::string sweep;                  // by its name, that head was measured for; empty: the store says none
  std::vector<GateFinding> findings;  // the worst first
  GateAnswer answer = GateAnswer::kMissing;
};

// A result that head should have.
struct ExpectedCell {
  std::string point_id;
  std::string spec;
  std::string setup;
  std::string words;  // why it has none, as far as the store says it
};

struct ExpectedCells {
  bool is_whole = false;  // it is what a sweep has, else only what the infrastructure is known to have cost
  std::vector<ExpectedCell> cells;
};

// What the store's sweeps that are at this campaign have, and what of it ended for want of infrastructure.
ExpectedCells ReadExpected(Store& store, const std::string& campaign);

struct GateSides {
  std::vector<MeasuredCell> head;
  std::vector<MeasuredCell> baseline;  // ended before head
  std::vector<MeasuredCell> recent;    // the same with what the baseline leaves out because it looked worse
  std::vector<MeasuredCell> pinned;
  ExpectedCells expected;
  std::vector<AcceptedChange> accepted;
};

// Step times are screened by the nightly rule (regress/nightly.h): a suspect is inconclusive until base and head have
// been measured in turns (regress/confirm.h), or the nights decide together, of all cells as many as are no accident; a
// large change has regressed at once. Peak memory that grew is a suspect too, and has regressed where it is large or
// the night before had it. A failure where the baseline has a result is a regression. Missing is what is expected of
// head and has no result: what its sweep has, else what the baseline has. Nothing measured at all is a finding too, of
// no point.
Gate MakeGate(const GateSides& sides);

// What passes without seeing a slowdown of this share is inconclusive instead. To be called before suspects are
// measured again.
void DemandDetection(Gate& gate, double share);

// Puts the worst first, and says the whole's answer. To be called again where findings were changed.
void Conclude(Gate& gate);

// "1 regressed, 2 inconclusive, 5 pass".
std::string GateCounts(const Gate& gate);

// 0 pass, 1 regression, 3 infrastructure, 4 inconclusive.
int GateExitCode(GateAnswer answer);

}  // namespace ridgeline
