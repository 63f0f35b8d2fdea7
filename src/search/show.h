// A search in words: what it chooses, why, and with what result. Each figure says whether it is predicted or measured.
#pragma once

#include <string>
#include <vector>

#include "search/decide.h"
#include "search/space.h"
#include "sweep/sweep.h"

namespace ridgeline::search {

// "1.20K tokens/s", "31.20 USD a billion tokens", "25.1M parameters x 4.10K tokens".
std::string ValueWords(const SearchSpace& space, const sweep::SweepSearch& search, size_t point, double value);

// The sweep's search: "search: tokens/s over batch_size, checkpointing; 66 points, at most 12 runs; times by h100,
// extrapolated". Several spaces have a line each.
std::string SearchWords(const sweep::Sweep& sweep, const std::vector<SearchSpace>& spaces);

// Why this point is measured next, and which run of the search it is.
std::string ChoiceWords(const SearchSpace& space, const sweep::SweepSearch& search, const SearchDecision& decision,
                        const Expected& chosen, int64_t run);

// The result of a search that has ended or was stopped: the best measurement with its interval, why it ended, and what
// was not tried. A line each.
std::vector<std::string> AnswerLines(const SearchSpace& space, const sweep::SweepSearch& search,
                                     const SearchDecision& decision);

// What a search would try first, if nothing is run: a line a point, at most `most`.
std::vector<std::string> FirstLines(const SearchSpace& space, const sweep::SweepSearch& search,
                                    const SearchDecision& decision, size_t most);

}  // namespace ridgeline::search
