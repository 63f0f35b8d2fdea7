// `ridgeline run --dry-run`: shows what a run would start.
#pragma once

#include <filesystem>
#include <string>

#include "driver/driver.h"
#include "store/store.h"
#include "sweep/sweep.h"

namespace ridgeline::cli {

// Copies the database into this folder, and opens the copy. If there is no database, the copy is empty.
store::Store CopyOfDatabase(const std::filesystem::path& db, const std::filesystem::path& folder);

// Prints the commands of the points that a run with these options would start, and counts the other points by reason.
// Writes into `copy`, a copy of the database.
void ShowDryRun(sweep::Sweep sweep, const driver::DriverOptions& options, store::Store& copy);

}  // namespace ridgeline::cli
