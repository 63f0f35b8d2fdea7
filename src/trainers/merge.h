// What several writers printed of one metric, as one: ranks in one log, logs of one run.
#pragma once

#include <cstdint>
#include <vector>

#include "trainers/amount.h"

namespace ridgeline {

// A series. `steps` has the step of each value, and grows; empty: they have none, and the i-th are of one moment.
struct StepValues {
  std::vector<double> values;
  std::vector<int64_t> steps;
};

// Of one moment; NaN outdoes every number but those of the first rank alone.
double Merged(double first, double other, OfRanks how);

// Value by value: by their steps where both have them, else by their places.
StepValues MergeRanks(const StepValues& first, const StepValues& other, OfRanks how);

}  // namespace ridgeline
