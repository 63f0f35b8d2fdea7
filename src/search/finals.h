// The end of a search: single runs differ by more than the best few of the points do, so these are measured again, in
// turns, before one of them is said to be the best.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ridgeline {

// Within so much of the best nothing is looked for.
inline constexpr double kWorthLooking = 1.02;

// So many points at most are measured again, so many times at most.
inline constexpr int64_t kMostFinalists = 3;
inline constexpr int64_t kMostTurns = 3;

// A point that was measured: an index into the space's points, and the objective by its first run and by those of the
// turns, in order.
struct Contender {
  size_t point = 0;
  std::vector<double> values;
};

struct Finalist {
  size_t point = 0;
  double value = 0;           // geometric mean of its runs
  bool could_be_best = true;  // could well be so much better than the first that it is worth looking (kWorthLooking)
};

struct Finals {
  std::vector<Finalist> finalists;  // the best first; empty: none is near enough to the best to be measured again
  int64_t turns = 0;                // that all of them have had
  int64_t next_turn = 0;            // of `run`, from 1; 0: they have ended
  std::vector<size_t> run;          // points, together
  double interval = 1;              // the true value of the first is within this factor of its mean, 95 times in 100
};

// How many of a search's runs are kept for its end: a third, where that is a turn of all finalists.
int64_t RunsForFinals(int64_t budget);

// Whether there are finals to be held: several points near enough to the best, as their first runs say.
bool HasFinals(const std::vector<Contender>& contenders);

// `runs`: how many their turns may take in all. Turns that only some have had so far count where all have had them.
// What two of them differ by is judged by what is left of the runs' logarithms when each point's own mean and each
// turn's are taken away, so that a machine which gets slower for all of them from one turn to the next changes nothing.
Finals JudgeFinals(std::vector<Contender> contenders, int64_t runs);

}  // namespace ridgeline
