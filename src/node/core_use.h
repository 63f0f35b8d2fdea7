// Measures who used a point's cores while it ran: this job's processes and others. Reads the kernel's counters before
// and after the point, so watching costs the point nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "base/clock.h"
#include "ridgeline/run.h"

namespace ridgeline::node {

// Counters that only grow.
struct CoreUse {
  int64_t busy_ticks = 0;  // the cores' ticks in any process or interrupt, and given away by a hypervisor (steal)
  int64_t ticks = 0;       // all the cores' ticks
  int64_t own_ns = 0;      // processor time of this process and of its children that have ended
  int64_t throttles = 0;   // how often a core got too hot for its clock, or our cgroup used up its quota
};

// Reads the counters of these cores; if none are given, of all. Values that the kernel does not count are 0. `root` is
// "/" except in tests.
CoreUse ReadCoreUse(std::span<const int> cores, const std::filesystem::path& root = "/");

// The share of all cores' time that others take now. 0 if the machine's load shows no others, else measured over a
// tenth of a second.
double OthersShareNow(Clock& clock, const std::filesystem::path& root = "/");

// Sets the result's figures from the counters before and after the point. Leaves them if too little time was counted to
// notice others. `share`: the point's share of the cores' time. If that is less than all, others disturb the point only
// as far as they leave it less.
void SetCoreUse(const CoreUse& before, const CoreUse& after, RunResult& result, double share = 1);

}  // namespace ridgeline::node
