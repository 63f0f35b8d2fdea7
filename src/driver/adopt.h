// Jobs of an earlier run become this run's.
#pragma once

#include <vector>

#include "driver/driver.h"
#include "driver/job_table.h"
#include "driver/planner.h"
#include "driver/sweep_points.h"
#include "driver/tally.h"

namespace ridgeline::driver {

// Adds the sweep's live jobs to `live`. Jobs that the launcher may not have heard of are to be submitted again, under
// their key. Adds their points that still need a result to `tally`. Returns the jobs that were never submitted and no
// longer can be. Throws Error(kUsage) if a job is on another launcher.
std::vector<LiveJob> AdoptJobs(const sweep::Sweep& sweep, const DriverParts& parts, const SweepPoints& points,
                               const Planner& planner, Tally& tally, JobTable& live);

}  // namespace ridgeline::driver
