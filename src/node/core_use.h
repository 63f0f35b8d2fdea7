// Who used a point's cores while it ran: this job's processes, and others. Read before and after from what the kernel
// counts, so watching costs the point nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "base/clock.h"
#include "ridgeline/run.h"

namespace ridgeline {

// Counters that only grow.
struct CoreUse {
  int64_t busy_ticks = 0;  // of the cores: in any process or interrupt, and what a hypervisor gave to others (steal)
  int64_t ticks = 0;       // of the cores: all time
  int64_t own_ns = 0;      // processor time of this process and of its children that have ended
  int64_t throttles = 0;   // how often a core grew too hot for its clock, or our cgroup had used up its share
};

// Of these cores; none: of all. What the kernel does not count is 0. `root` is "/" but in tests.
CoreUse ReadCoreUse(std::span<const int> cores, const std::filesystem::path& root = "/");

// What others take of all cores' time now: 0 where the machine's load says that they take none, else what is seen in a
// tenth of a second.
double OthersShareNow(Clock& clock, const std::filesystem::path& root = "/");

// Sets the result's figures from the counters before and after the point; leaves them where too little time was
// counted to tell that others took any. `share`: of the cores' time that is the point's. Where that is less than all,
// others disturb it only as far as they leave it less.
void SetCoreUse(const CoreUse& before, const CoreUse& after, RunResult& result, double share = 1);

}  // namespace ridgeline
