// Jobs that slurmdbd remembers after slurmctld has forgotten them.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "slurm/agent/rows.h"

namespace ridgeline::slurm_agent {

// Returns our own jobs of these names or ids that slurmdbd saw at or after `since`, in any state. One row for each job
// or array task, of its latest run; `restarts` counts the earlier runs. Throws Failure.
std::vector<Row> JobsInAccounting(const std::vector<std::string>& names, const std::vector<uint32_t>& ids, time_t since,
                                  const std::string& cluster);

}  // namespace ridgeline::slurm_agent
