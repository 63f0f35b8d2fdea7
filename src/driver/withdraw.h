// Takes back jobs that wait in a launcher's queue.
#pragma once

#include <string>

#include "driver/driver.h"
#include "driver/job_table.h"

namespace ridgeline::driver {

enum class Queued { kAll, kKeptOffNodes };

// Tells the jobs that have not begun to end, with `why` as the reason. Their points are run later. If a job began
// meanwhile, its results stand. The store is told first, so that the next run reads these ends correctly if this run
// dies. If the launcher does not answer now, the jobs stay in its queue.
void WithdrawQueued(JobTable& jobs, const DriverParts& parts, const std::string& why, Queued which = Queued::kAll);

// Ends the jobs that the launcher has never heard of, without a word to it, and forgets them.
void EndUnsubmitted(JobTable& jobs, const DriverParts& parts);

// Tells jobs to end that an earlier run withdrew, because it may have died before it told them.
void WithdrawAdopted(JobTable& jobs, const DriverParts& parts);

}  // namespace ridgeline::driver
