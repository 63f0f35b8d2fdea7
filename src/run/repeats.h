// A point's repeats, each a run of its own, are one measurement: the figures of all of them together.
#pragma once

#include <cstdint>

#include "ridgeline/run.h"

namespace ridgeline {

// Adds what earlier repeats of the same point measured, on the same machine by the same version: `earlier` holds the
// step times of all of them, without the warm-up of any but the first, and how many they are in `repeat`. `result`, of
// a run that ended well, then says the same of one more: its step times behind theirs, without its `warmup_steps`, and
// the medians of all; cold throughput over all runs whole; the largest peaks, and the most of its cores' time that
// others took; of its GPU the means of all, the energy of all, and the worst of what disturbed any. Losses stay those
// of its own run. Where either has no step times, `result` keeps its own figures. Its `repeat` is the next in any case.
void AddEarlierRepeats(const RunResult& earlier, int64_t warmup_steps, RunResult& result);

}  // namespace ridgeline
