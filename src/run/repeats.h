// Combines a point's repeats, each a run of its own, into one measurement with the figures of all of them.
#pragma once

#include <cstdint>

#include "ridgeline/run.h"

namespace ridgeline {

// Adds the measurements of earlier repeats of the same point, on the same machine with the same version. `earlier`
// holds the step times of all of them, without the warm-up of any but the first, and their number in `repeat`. `result`
// is from a run that ended well. Afterwards it covers one repeat more:
//
// - its step times follow theirs, without its `warmup_steps`, and the medians are over all;
// - cold throughput is over all whole runs;
// - peaks are the largest, and so is the share of its cores' time that others took;
// - of its GPU it has the means of all, the energy of all, and the worst disturbance of any.
//
// Losses stay those of its own run. If either has no step times, `result` keeps its own figures. Its `repeat` is the
// next number in any case.
void AddEarlierRepeats(const RunResult& earlier, int64_t warmup_steps, RunResult& result);

}  // namespace ridgeline
