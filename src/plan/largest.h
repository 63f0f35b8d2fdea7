// The largest batch, or the longest sequence, that fits: searched for each combination of what else a sweep varies.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/show.h"
#include "sweep/sweep.h"

namespace ridgeline {

struct Largest {
  RunSpec spec;             // with the largest value that fits; with 1 where that is too much already
  bool fits = false;        // false: 1 is too much already
  bool by_memory = true;    // false: the model allows no more (a gpt's positions), or the field's range ends
  MemoryForecast forecast;  // of one rank, as `spec` has it
  SlabLimit limit;
};

// One for each combination of what the sweep varies beside `field` (batch_size or seq_length), in its order; what it
// says of `field` itself is not asked, but for its rules. The value after the one found does not fit, by forecasts of
// both. Throws Error(kUsage) for another field, for a point whose memory nothing limits, and for another trainer's.
std::vector<Largest> FindLargest(const Sweep& sweep, const std::string& field, const NodeMemory& node,
                                 const Forecaster& forecaster);

// One row each: the other fields that vary, the value, the peak it has, what is available and why.
Table LargestTable(const Sweep& sweep, const std::string& field, const std::vector<Largest>& largest,
                   Audience audience);

}  // namespace ridgeline
