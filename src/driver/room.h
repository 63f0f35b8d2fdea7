// Whether a launcher can run jobs now, and how many at once.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "driver/driver.h"
#include "driver/launcher_retries.h"

namespace ridgeline::driver {

struct LauncherRoom {
  bool queues = false;  // the launcher has a queue of its own
  int64_t jobs = 1;     // most jobs that it has at once
};

// The error that this launcher can run no jobs now, and why.
Error CannotRunHere(const std::string& launcher, const std::string& why);

// Returns the launcher's room for jobs. If the launcher does not answer, asks again, with the same patience as later.
// Throws Error(kInfrastructure) if the launcher can run no jobs now. Throws Error(kUsage) if a run is to be detached
// and the launcher has no queue.
LauncherRoom RoomOf(const DriverParts& parts, const DriverOptions& options, LauncherRetries& retries);

}  // namespace ridgeline::driver
