// The local launcher's configuration: how many jobs at once, and which cores each gets.
#pragma once

#include <cstddef>
#include <vector>

#include "common/failure.h"

namespace ridgeline::local {

// The sweep's `launch:` mapping, as far as it concerns this launcher:
//   max_parallel  jobs at once (1)
//   cpus          cores a job (as many as there are, shared out evenly)
// A job runs in a slot; a slot's cores are its own. One element a slot. Throws Failure where `allowed` cores are not
// enough, or a value is not a whole number (0 stands for "not said").
std::vector<std::vector<int>> SlotCores(const plugin::Json& config, const std::vector<int>& allowed);

// Throws Failure for a job that a slot of so many cores is not enough for, or that has settings of its own.
void CheckJob(const plugin::Json& job, size_t slot_cores);

}  // namespace ridgeline::local
