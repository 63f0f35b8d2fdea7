// Whether a launcher can run jobs now, and how many it has at once.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "driver/driver.h"
#include "driver/reluctance.h"

namespace ridgeline {

struct LauncherRoom {
  bool queues = false;  // it runs jobs in its own time
  int64_t jobs = 1;     // that it has at once
};

// That the launcher of this name can run no jobs now, and why.
Error CannotRunHere(const std::string& launcher, const std::string& why);

// Says where jobs go. A launcher that cannot say just now is asked again, as patiently as later. Throws
// Error(kInfrastructure) where it can run none now, Error(kUsage) where a run is to be detached from a launcher that
// has no queue.
LauncherRoom RoomOf(const DriverParts& parts, const DriverOptions& options, Reluctance& reluctance);

}  // namespace ridgeline
