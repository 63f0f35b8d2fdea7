// A search in words: what it chooses and why, and what it came to. Predicted and measured say which they are.
#pragma once

#include <string>
#include <vector>

#include "search/decide.h"
#include "search/space.h"
#include "sweep/sweep.h"

namespace ridgeline {

// "1.20K tokens/s", "31.20 USD a billion tokens", "25.1M parameters x 4.10K tokens".
std::string ValueWords(const SearchSpace& space, const SweepSearch& search, size_t point, double value);

// Of the sweep: "search: tokens/s over batch_size, checkpointing; 66 points, at most 12 runs; times by h100,
// extrapolated". With several spaces each is told.
std::string SearchWords(const Sweep& sweep, const std::vector<SearchSpace>& spaces);

// Why this point is measured next, as which run of this search.
std::string ChoiceWords(const SearchSpace& space, const SweepSearch& search, const SearchDecision& decision,
                        const Expected& chosen, int64_t run);

// What a search that has ended, or was stopped, came to: the best that was measured with its interval, why it ended,
// and what was not tried. A line each.
std::vector<std::string> AnswerLines(const SearchSpace& space, const SweepSearch& search,
                                     const SearchDecision& decision);

// What would be tried first, where nothing is run: a line a point, `most` of them.
std::vector<std::string> FirstLines(const SearchSpace& space, const SweepSearch& search, const SearchDecision& decision,
                                    size_t most);

}  // namespace ridgeline
