#include "driver/room.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline {

LauncherRoom RoomOf(const DriverParts& parts, const DriverOptions& options) {
  const LauncherStatus status = parts.launcher.Probe();
  const bool queues = parts.launcher.can().queue;
  if (options.detach && !queues) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("the launcher {} has no queue that would start jobs when we are gone", parts.launcher.name()),
        "leave --detach out; `nohup ridgeline run SWEEP &` runs on without a terminal");
  }
  if (!status.available) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("the launcher {} cannot run jobs here: {}", parts.launcher.name(), status.why),
                "`ridgeline doctor` says more");
  }
  if (queues) parts.observer.Note("jobs go to " + PrintableLine(status.description));
  return {queues, queues ? status.max_jobs : options.max_parallel};
}

}  // namespace ridgeline
