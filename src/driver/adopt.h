// Jobs of an earlier run become this run's.
#pragma once

#include <vector>

#include "driver/driver.h"
#include "driver/job_table.h"
#include "driver/planner.h"
#include "driver/sweep_points.h"
#include "driver/tally.h"

namespace ridgeline {

// Adds the sweep's live jobs to `live`; those that the launcher may not have heard of are to be submitted again, under
// their key. What of their points is still to be done, `tally` is told. Returns those that were never submitted and
// cannot be any more. Throws Error(kUsage) where one is on another launcher.
std::vector<LiveJob> AdoptJobs(const Sweep& sweep, const DriverParts& parts, const SweepPoints& points,
                               const Planner& planner, Tally& tally, JobTable& live);

}  // namespace ridgeline
