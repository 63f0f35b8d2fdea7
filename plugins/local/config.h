// The local launcher's configuration: how many jobs run at once, and which cores each gets.
#pragma once

#include <cstddef>
#include <vector>

#include "common/failure.h"

namespace ridgeline::local {

// The part of the sweep's `launch:` mapping for this launcher:
//   max_parallel  jobs at once (1)
//   cpus          cores for each job (default: all cores, shared evenly)
// A job runs in a slot, which has cores of its own. Returns the cores of each slot. Throws Failure if there are too few
// `allowed` cores, or a value is not a whole number (0 means "not given").
std::vector<std::vector<int>> SlotCores(const plugin::Json& config, const std::vector<int>& allowed);

// Throws Failure for a job that needs more than `slot_cores` cores, or that has settings of its own.
void CheckJob(const plugin::Json& job, size_t slot_cores);

}  // namespace ridgeline::local
