// Takes back what waits in a launcher's queue.
#pragma once

#include <string>

#include "driver/driver.h"
#include "driver/job_table.h"

namespace ridgeline {

enum class Queued { kAll, kKeptOffNodes };

// Tells the jobs that have not begun to end, with `why` as what they ended of: their points are owed their turn, and
// what one had done that began meanwhile stands. The store knows it first, so that the next run reads their end rightly
// where this one does not live to hear of it. A launcher that cannot be asked now leaves them where they are.
void WithdrawQueued(JobTable& jobs, const DriverParts& parts, const std::string& why, Queued which = Queued::kAll);

// Tells those again to end that an earlier run withdrew: it may not have lived to tell them.
void WithdrawAdopted(JobTable& jobs, const DriverParts& parts);

}  // namespace ridgeline
