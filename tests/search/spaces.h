// Spaces to search in, without a sweep.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "run/fields.h"
#include "search/decide.h"
#include "search/space.h"

namespace ridgeline::search {

// A point for each combination of the axes' levels. The first axis holds numbers, the others words. `predicted` gives a
// point's prediction in tokens a second. A point's id is its number.
template <typename Predicted>
SearchSpace GridOf(const std::vector<int32_t>& sizes, double spread, const Predicted& predicted) {
  SearchSpace space;
  space.spread = spread;
  space.knows_level = true;
  space.basis = "a test";
  for (size_t axis = 0; axis < sizes.size(); ++axis) space.ordered.push_back(axis == 0);
  std::vector<int32_t> levels(sizes.size(), 0);
  for (;;) {
    SearchPoint point;
    point.point.id = std::to_string(space.points.size());
    point.label = "point " + point.point.id;
    point.levels.assign(levels.begin(), levels.end());
    point.tokens_per_s = predicted(levels);
    point.share = 0.1;
    space.points.push_back(point);
    size_t axis = sizes.size();
    while (axis > 0 && ++levels[axis - 1] == sizes[axis - 1]) levels[--axis] = 0;
    if (axis == 0) return space;
  }
}

inline sweep::SweepSearch SearchFor(sweep::SweepSearch::Objective objective, int64_t budget) {
  sweep::SweepSearch search;
  search.maximize = objective;
  search.over = {FindField("batch_size")};
  search.budget = budget;
  return search;
}

// Runs a search to its end. `measure` gives the result of a point, by index. Returns how it ended, and the points it
// tried.
template <typename Measure>
SearchDecision RunSearch(const SearchSpace& space, const sweep::SweepSearch& search, Measure&& measure, Trials& trials,
                         int64_t at_once = 1) {
  for (;;) {
    SearchDecision decision = Decide(space, search, trials, at_once);
    if (decision.run.empty()) return decision;
    for (const Expected& chosen : decision.run) {
      const Trial measured = measure(chosen.point);
      Trial& trial = trials[space.points[chosen.point].point.id];
      if (decision.finals.next_turn > 0) {
        trial.turns.push_back(measured.tokens_per_s);
      } else {
        trial = measured;
      }
    }
  }
}

}  // namespace ridgeline::search
