// Values as a log has them, one behind the other, as a series of steps: whoever of several ranks printed them, and
// however often.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainers/amount.h"

namespace ridgeline {

struct Sample {
  double value = 0;
  int64_t step = 0;
  int64_t of = 0;     // how many steps there are, as the line says; 0: it does not
  uint64_t line = 0;  // a hash of what the whole line says
  uint32_t rank = 0;  // a place in the list of ranks' names
  bool has_step = false;
};

// Numbers by their size, anything else by its letters.
bool IsLowerRank(const std::string& a, const std::string& b);

// What is known of the run.
struct SeriesFacts {
  std::optional<int64_t> ranks;
  std::optional<int64_t> steps;
  bool ended_well = false;  // so that it has done all of them
};

struct Series {
  std::vector<double> values;
  std::vector<int64_t> steps;   // of each value; empty where not every one has its own
  std::vector<int64_t> covers;  // how many steps each is of, of intervals alone
  bool is_by_moment = false;    // without steps: ranks' lines were told apart, so that a value is of a moment
  bool is_mixed = false;        // without steps: not as many lines name their rank as do not, and some were left out
};

// One value a step. Of a rank that the lines name, its own steps are told apart from other ranks', and the ranks'
// values of a step are merged. Of ranks without names, a step that is printed again is another rank's. Steps that begin
// anew, by more than the distance from one to the next, are a run that did or a next epoch, and come behind the others;
// unless the point's steps and ranks say that each of these is a whole rank, or that a run was started again, of which
// then the last values count. Without steps and names, lines that are there as often as each other are the ranks'. With
// names and without steps the i-th lines of the ranks are of one moment.
Series SeriesOf(const std::vector<Sample>& samples, const std::vector<std::string>& ranks, OfRanks how,
                const SeriesFacts& facts);

// Without those of other bars, such as an evaluation's: what says that it is of other steps than the point's, where
// some say that they are of these.
void DropOtherBars(int64_t steps, std::vector<Sample>& samples);

// Lines of which each has a time of one of `micro` micro-steps of a step: a value a step, the mean of its lines'
// values. Steps that go beyond the point's are numbers of micro-steps, and so are lines without a number that are more.
std::vector<Sample> OfMicroSteps(std::vector<Sample> samples, int64_t micro, const SeriesFacts& facts);

// Of each step the sum over its ranks; steps that not all of them say are left out.
Series SumsOf(const std::vector<Sample>& samples);

// How lines are timed.
struct Timing {
  int64_t resolution_ns = 1;
  int64_t wraps_ns = 0;  // after so long a time begins again; 0: it does not
  int64_t every = 1;     // how many steps there are from line to line, where lines have no number
};

// From the times of lines (values, in ns) how long a step took: the time from one step's line to the next, over the
// steps between. Of ranks it is the first's; of a step its first line's. A clock that is set back gives none. Where the
// resolution is too coarse for one step, several are taken together. Lines without a number that are more than the
// point's steps have lines, or fewer where all were done, are not what they are taken for, and say nothing.
Series IntervalsOf(std::vector<Sample> samples, const std::vector<std::string>& ranks, const SeriesFacts& facts,
                   const Timing& timing);

}  // namespace ridgeline
