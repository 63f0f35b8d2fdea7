// Which points a search measures next, and when it ends. The decision depends only on predictions and measurements, so
// an interrupted search continues where it stopped.
//
// Kriging (stats/kriging.h) carries ln(measured / predicted) over to similar points: all points share an error, points
// with one value of an axis share one, and neighbours share one. So each point has an expected value and an interval.
// The point whose interval reaches highest is measured next (an upper confidence bound: Srinivas et al., "Gaussian
// Process Optimization in the Bandit Setting", 2010). To choose several at once, the search assumes that those chosen
// before came out as expected. It ends when no interval reaches two percent above the best measurement, or when the
// budget is spent. If a point runs out of memory, all points that need as much are excluded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ridgeline/run.h"
#include "search/finals.h"
#include "search/space.h"
#include "sweep/sweep.h"

namespace ridgeline::search {

// What is known of a point.
struct Trial {
  RunStatus status = RunStatus::kOk;
  double tokens_per_s = 0;
  double standard_error = 0;       // of ln(tokens_per_s); 0: not known
  bool paid = false;               // this search ran it; a point known before costs no budget
  std::vector<double> turns = {};  // tokens/s of this search's repeats in turns; 0: a run failed
};
using Trials = std::map<std::string, Trial>;  // by the point's id

// Whether the point ran out of memory.
bool EndedForMemory(RunStatus status);

// What a point is expected to give: its index among the space's points, and the objective.
struct Expected {
  size_t point = 0;
  double value = 0;
  double low = 0;  // of the 95 % interval; equal to `high` if it is known and not predicted
  double high = 0;
};

struct SearchDecision {
  enum class End { kNone, kBudget, kNothingBetter, kNothingLeft };
  std::vector<Expected> run;   // to measure next, together; empty if the search has ended
  End end = End::kNone;        // why it stopped trying points; finals may follow
  Finals finals;               // empty until then
  std::optional<size_t> best;  // best measured point
  double best_value = 0;
  double best_interval = 1;    // the true value is within this factor in 95 of 100 cases; 1: not known
  int64_t tried = 0;           // points with a known end
  int64_t paid = 0;            // runs of this search
  int64_t failed_again = 0;    // points that failed when repeated, and so cannot be the best
  int64_t too_large = 0;       // not tried: predicted not to fit
  int64_t as_large = 0;        // not tried: they need as much as one that ran out of memory
  std::vector<Expected> left;  // other untried points, the most promising first
  int64_t promising = 0;       // how many of `left` could still be worth a run
};

// `at_once`: how many points are measured together.
SearchDecision Decide(const SearchSpace& space, const sweep::SweepSearch& search, const Trials& trials,
                      int64_t at_once);

}  // namespace ridgeline::search
