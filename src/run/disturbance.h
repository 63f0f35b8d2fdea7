// Describes in words what may have disturbed a result's times.
#pragma once

#include <cstdint>
#include <string>

#include "ridgeline/run.h"

namespace ridgeline {

// A larger share of its cores' time, taken by other programs, disturbs a run. Interrupts and the rounding of ticks take
// less.
inline constexpr double kDisturbingShare = 0.05;

// Above this share, a run's times mostly reflect the other programs: a step that shares its cores so takes a quarter
// longer, and no interval of its own steps shows it. Reports make no statement about such times, and mark each of them.
inline constexpr double kHeadlineShare = 0.20;

// A GPU disturbs a run if it was throttled in a larger share of the run's measured steps. Then at least one of twenty
// steps is slower than the GPU itself, and so is the steps' 95th percentile. A smaller share changes neither that nor
// the median.
inline constexpr double kThrottledShare = 0.05;

// More GPU memory than this, in use before the run, belongs to another program, even if the driver shows none, as in a
// container. The driver itself keeps less, and a process with its own CUDA context uses more.
inline constexpr int64_t kDisturbingGpuBytes = 256LL << 20;

// "others took 41 % of its cores' time, its GPU was throttled in 12 % of its measured steps (its heat)"; empty if no
// disturbance is known.
std::string Disturbance(const RunResult& result);

}  // namespace ridgeline
