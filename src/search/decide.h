// Which points a search measures next, and when it has ended. It follows from what is predicted and what was measured
// alone, so that whoever was stopped goes on where he was.
//
// Logarithms of measured over predicted are carried over to the points that are not measured, as far as those are alike
// (stats/kriging.h): all of them share an error, those of one value of an axis share one, and neighbours share one. So
// each point has an expected value and an interval; the one whose interval reaches highest is measured next (an upper
// confidence bound: Srinivas et al., "Gaussian Process Optimization in the Bandit Setting", 2010). Several at once are
// chosen as if those before them had come out as expected. It ends where no interval reaches two percent above the best
// that was measured, or the budget is spent. A point that ran out of memory takes with it all that need as much.
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

namespace ridgeline {

// What became of a point.
struct Trial {
  RunStatus status = RunStatus::kOk;
  double tokens_per_s = 0;
  double standard_error = 0;       // of its logarithm; 0: not known
  bool paid = false;               // this search ran it; else it was known before, and costs nothing of the budget
  std::vector<double> turns = {};  // tokens/s when it was measured again, by this search, in turns; 0: it failed
};
using Trials = std::map<std::string, Trial>;  // by the point's id

// Whether it has shown what is too much for the memory.
bool EndedForMemory(RunStatus status);

// What a point that was not measured would give: an index into the space's points, and the objective.
struct Expected {
  size_t point = 0;
  double value = 0;
  double low = 0;  // of an interval of 95 %; the same where it is not predicted but known
  double high = 0;
};

struct SearchDecision {
  enum class End { kNone, kBudget, kNothingBetter, kNothingLeft };
  std::vector<Expected> run;   // next, together; empty where it has ended
  End end = End::kNone;        // of its looking for points; what looked best may still be measured again
  Finals finals;               // nothing before that end
  std::optional<size_t> best;  // of the points that were measured
  double best_value = 0;
  double best_interval = 1;    // the true value is within this factor of it, 95 times in 100; 1: not known
  int64_t tried = 0;           // points of which something is known
  int64_t paid = 0;            // runs of this search
  int64_t failed_again = 0;    // points that failed when they were measured again, and so are not the best
  int64_t too_large = 0;       // not tried: predicted not to fit
  int64_t as_large = 0;        // not tried: they need as much as one that ran out of memory
  std::vector<Expected> left;  // not tried otherwise, those first that could be best
  int64_t promising = 0;       // of `left`, that could be worth looking at
};

// `at_once`: how many are measured together.
SearchDecision Decide(const SearchSpace& space, const SweepSearch& search, const Trials& trials, int64_t at_once);

}  // namespace ridgeline
