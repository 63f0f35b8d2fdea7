// The origin of results. Fills in rows that are older than the columns for it.
#pragma once

#include "store/sqlite.h"

namespace ridgeline {

// Fills in the setup of sweeps, jobs and results that have none, from the sweep's kept text. Fills in the machine and
// the version of environments that have none, from their facts.
void FillLineage(Database& database);

}  // namespace ridgeline
