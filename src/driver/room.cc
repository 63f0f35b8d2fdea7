#include "driver/room.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "driver/retry_policy.h"

namespace ridgeline::driver {

namespace {

launch::LauncherStatus Ask(const DriverParts& parts, LauncherRetries& retries) {
  launch::LauncherStatus status = parts.launcher.Probe();
  for (int tries = 1; !status.available && status.retry && parts.interrupts() == 0; ++tries) {
    retries.NotAnswered(Error(ErrorKind::kInfrastructure,
                              fmt::format("the launcher {} does not answer: {}", parts.launcher.name(), status.why)));
    parts.clock.SleepNs(TryAgainNs(tries));
    status = parts.launcher.Probe();
  }
  if (status.available) retries.Answered();
  return status;
}

}  // namespace

Error CannotRunHere(const std::string& launcher, const std::string& why) {
  return {ErrorKind::kInfrastructure, fmt::format("the launcher {} cannot run jobs here: {}", launcher, why),
          "`ridgeline doctor` says more"};
}

LauncherRoom RoomOf(const DriverParts& parts, const DriverOptions& options, LauncherRetries& retries) {
  const launch::LauncherStatus status = Ask(parts, retries);
  const bool queues = parts.launcher.can().queue;
  if (options.detach && !queues) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("the launcher {} has no queue that would start jobs when we are gone", parts.launcher.name()),
        "leave --detach out; `nohup ridgeline run SWEEP &` runs on without a terminal");
  }
  if (!status.available) {
    throw CannotRunHere(parts.launcher.name(), status.why);
  }
  if (queues) parts.observer.Note("jobs go to " + PrintableLine(status.description));
  return {queues, queues ? status.max_jobs : options.max_parallel};
}

}  // namespace ridgeline::driver
