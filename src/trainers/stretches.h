// A run's steps as its log shows them: values, each for some consecutive steps.
#pragma once

#include <cstdint>
#include <vector>

namespace ridgeline::trainers {

// A value from a log, and the optimizer steps that it covers. Steps count from 1.
struct Stretch {
  double value = 0;
  int64_t after = 0;  // the last step before those that it may cover
  int64_t last = 0;
  int64_t steps = 0;  // how many it covers at least
};

// Stretches of values with step numbers.
std::vector<Stretch> StretchesOf(const std::vector<double>& values, const std::vector<int64_t>& numbers, int64_t total);

// The same for intervals with a known number of steps each.
std::vector<Stretch> StretchesOf(const std::vector<double>& values, const std::vector<int64_t>& numbers,
                                 const std::vector<int64_t>& covers);

// The same without step numbers. If the run did all its steps, the values are spread evenly over them; otherwise each
// is one step. Each covers at least one. `writers`: how many ranks took turns to write them.
std::vector<Stretch> StretchesOf(const std::vector<double>& values, int64_t total, bool did_all, int64_t writers);

}  // namespace ridgeline::trainers
