// A run's steps as its log tells of them: values, each of some steps one behind the other.
#pragma once

#include <cstdint>
#include <vector>

namespace ridgeline {

// What a log says of how a run went along: a value, and the optimizer steps that it is of. Steps count from 1.
struct Stretch {
  double value = 0;
  int64_t after = 0;  // the last step before those that it may be of
  int64_t last = 0;
  int64_t steps = 0;  // as many as it surely stands for
};

// Values with the numbers of their steps.
std::vector<Stretch> StretchesOf(const std::vector<double>& values, const std::vector<int64_t>& numbers, int64_t total);

// The same of intervals, of each of which it is known how many steps it is.
std::vector<Stretch> StretchesOf(const std::vector<double>& values, const std::vector<int64_t>& numbers,
                                 const std::vector<int64_t>& covers);

// The same where nothing numbers the steps: in a run that did all of them they are spread evenly over these, else it is
// a value a step. Each surely stands for one. `writers` ranks took turns to write them.
std::vector<Stretch> StretchesOf(const std::vector<double>& values, int64_t total, bool did_all, int64_t writers);

}  // namespace ridgeline
