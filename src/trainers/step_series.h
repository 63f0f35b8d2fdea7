// Turns the values of a log into a series with one value a step, however many ranks printed them, and however often.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainers/amount.h"

namespace ridgeline::trainers {

struct Sample {
  double value = 0;
  int64_t step = 0;
  int64_t of = 0;     // the number of steps that the line states; 0: none
  uint64_t line = 0;  // hash of the whole line
  uint32_t rank = 0;  // index in the list of ranks' names
  bool has_step = false;
};

// Orders names: numbers by value, others alphabetically.
bool IsLowerRank(const std::string& a, const std::string& b);

// What is known about the run.
struct SeriesFacts {
  std::optional<int64_t> ranks;
  std::optional<int64_t> steps;
  bool ended_well = false;  // it has done all steps
};

struct Series {
  std::vector<double> values;
  std::vector<int64_t> steps;   // each value's step; empty unless all values have one
  std::vector<int64_t> covers;  // of intervals: how many steps each covers
  bool is_by_moment = false;    // without steps: ranks were told apart, so values belong to moments
  bool is_mixed = false;        // without steps: only some lines name a rank, and some were left out
};

// Returns one value a step. If lines name ranks, each rank's steps are its own, and the ranks' values of a step are
// merged. If they do not, a repeated step is another rank's. If step numbers go back by more than the distance between
// two steps, the log goes on with a restarted run or the next epoch, whose steps come after the others. There are two
// exceptions, recognized by the point's steps and ranks: each such part is a whole rank; or the run was started again,
// and then the last values count. Without steps and names, lines that occur equally often belong to the ranks. With
// names and without steps, the i-th lines of the ranks are of one moment.
Series SeriesOf(const std::vector<Sample>& samples, const std::vector<std::string>& ranks, OfRanks how,
                const SeriesFacts& facts);

// Removes values of other progress bars, such as an evaluation's: those that state another number of steps than the
// point's, if some state the point's.
void DropOtherBars(int64_t steps, std::vector<Sample>& samples);

// Returns one value a step from lines that each have the time of one of `micro` micro-steps: the mean of a step's
// lines. If step numbers exceed the point's steps, they number micro-steps. Without numbers, so do lines beyond them.
std::vector<Sample> OfMicroSteps(std::vector<Sample> samples, int64_t micro, const SeriesFacts& facts);

// Returns each step's sum over its ranks. Leaves out steps that some ranks lack.
Series SumsOf(const std::vector<Sample>& samples);

// How lines are timed.
struct Timing {
  int64_t resolution_ns = 1;
  int64_t wraps_ns = 0;  // times start over after so long; 0: never
  int64_t every = 1;     // steps from line to line, if lines have no step number
};

// Returns step times from the times of lines (values, in ns): the time from one step's line to the next, divided by the
// steps between. Takes the first rank, and the first line of a step. A clock that is set back gives no value. If the
// resolution is too coarse for one step, several steps are taken together. Lines without step numbers give nothing if
// there are more of them than the point's steps allow, or fewer though all steps were done.
Series IntervalsOf(std::vector<Sample> samples, const std::vector<std::string>& ranks, const SeriesFacts& facts,
                   const Timing& timing);

}  // namespace ridgeline::trainers
