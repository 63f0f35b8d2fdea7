// Jobs that slurmdbd remembers when slurmctld has forgotten them.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "slurm/agent/rows.h"

namespace ridgeline::slurm_agent {

// Our own jobs of these names, or of these ids, that slurmdbd saw at or after `since`, whatever their state. One row a
// job or array task, the latest of its runs; `restarts` counts the runs before it. Throws Failure.
std::vector<Row> JobsInAccounting(const std::vector<std::string>& names, const std::vector<uint32_t>& ids, time_t since,
                                  const std::string& cluster);

}  // namespace ridgeline::slurm_agent
