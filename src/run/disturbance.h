// What speaks against a result's times, in words.
#pragma once

#include <cstdint>
#include <string>

#include "ridgeline/run.h"

namespace ridgeline {

// More of its cores' time than this, taken by others, disturbs a run. Interrupts and the rounding of ticks take less.
inline constexpr double kDisturbingShare = 0.05;

// More than this, and its times are mostly of the others: a step that shares its cores so takes a quarter longer, and
// no interval of its own steps says so. Reports form no sentence about such times, and mark each of them.
inline constexpr double kHeadlineShare = 0.20;

// A GPU that was throttled in more than this share of a run's measured steps: of twenty steps one or more are slower
// than it is by itself, and with it the 95th percentile of them. Less moves neither that nor the median.
inline constexpr double kThrottledShare = 0.05;

// More of its GPU's memory than this, in use before the run, is another's, also where the driver shows nobody, as in a
// container: what it keeps for itself is less, and a process with a CUDA context of its own has more.
inline constexpr int64_t kDisturbingGpuBytes = 256LL << 20;

// "others took 41 % of its cores' time, its GPU was throttled in 12 % of its measured steps (its heat)"; empty where
// nothing is known to have disturbed the run.
std::string Disturbance(const RunResult& result);

}  // namespace ridgeline
