// Merges the values of one metric from several writers: ranks in one log, or logs of one run.
#pragma once

#include <cstdint>
#include <vector>

#include "trainers/amount.h"

namespace ridgeline::trainers {

// A series. `steps` has each value's step, in ascending order. If it is empty, the i-th values are of one moment.
struct StepValues {
  std::vector<double> values;
  std::vector<int64_t> steps;
};

// Merges two values of one moment. NaN wins over every number, except with OfRanks::kFirst.
double Merged(double first, double other, OfRanks how);

// Merges value by value: by step if both have steps, else by index.
StepValues MergeRanks(const StepValues& first, const StepValues& other, OfRanks how);

}  // namespace ridgeline::trainers
