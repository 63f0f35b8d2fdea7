// Where results come from: filled in for rows that are older than the columns that say it.
#pragma once

#include "store/sqlite.h"

namespace ridgeline {

// The setup of sweeps, jobs and results that have none: what the text kept for the sweep says. The machine and the
// version of environments that have none: what they say.
void FillLineage(Database& database);

}  // namespace ridgeline
