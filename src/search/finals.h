// The end of a search. Single runs vary by more than the best few points differ. So these are measured again, in turns,
// before one of them is called the best.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ridgeline::search {

// A gain below this share is not worth a run.
inline constexpr double kWorthLooking = 1.02;

// At most so many points are measured again, at most so many times each.
inline constexpr int64_t kMostFinalists = 3;
inline constexpr int64_t kMostTurns = 3;

// A measured point: its index among the space's points, and the objective of its first run and of its turns, in order.
struct Contender {
  size_t point = 0;
  std::vector<double> values;
};

struct Finalist {
  size_t point = 0;
  double value = 0;           // geometric mean of its runs
  bool could_be_best = true;  // it may be better than the first by kWorthLooking
};

struct Finals {
  std::vector<Finalist> finalists;  // the best first; empty if no other point is near the best
  int64_t turns = 0;                // turns that all of them have had
  int64_t next_turn = 0;            // the turn of `run`, from 1; 0: there is none
  std::vector<size_t> run;          // points to measure next, together
  double interval = 1;              // the first's true value is within this factor of its mean in 95 of 100 cases
};

// How many runs of the budget are kept for the finals: a third, if that is enough for a turn of all finalists.
int64_t RunsForFinals(int64_t budget);

// Whether finals are needed: by their first runs, several points are near the best.
bool HasFinals(const std::vector<Contender>& contenders);

// `runs`: how many runs the turns may take in all. A turn counts when all finalists have had it. The noise is what
// remains of the logarithms after each point's mean and each turn's mean are subtracted. So a machine that gets slower
// for all points from one turn to the next changes nothing.
Finals JudgeFinals(std::vector<Contender> contenders, int64_t runs);

}  // namespace ridgeline::search
