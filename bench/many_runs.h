// Databases of the size that the benchmarks need.
#pragma once

#include <cstdint>

#include "store/store.h"

namespace ridgeline {

inline constexpr int64_t kRuns = 100'000;
inline constexpr int64_t kCurves = 102;

// kRuns points of the sweep `bench`, and kCurves runs of 1,000 steps.
void FillRuns(store::Store& store);

// 500 nights of 200 points, each night at its own commit, 5 % slower from the 300th on: kRuns measurements.
void FillNights(store::Store& store);

}  // namespace ridgeline
