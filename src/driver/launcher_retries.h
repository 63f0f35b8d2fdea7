// Handles a launcher that does not answer, or says "not now": tells the observer once, and waits up to a limit.
#pragma once

#include <string>

#include "base/error.h"
#include "driver/driver.h"
#include "driver/retry_policy.h"

namespace ridgeline::driver {

class LauncherRetries {
 public:
  // `parts` must outlive this object. `launcher_timeout_s` as in Launch.
  LauncherRetries(const DriverParts& parts, int64_t launcher_timeout_s)
      : parts_(parts), patience_(launcher_timeout_s * 1'000'000'000) {}

  void Answered() { patience_.Answered(); }

  // Throws the error if this has gone on for too long. Submitted jobs then go on, and the next run finds them.
  void NotAnswered(const Error& error);

 private:
  const DriverParts& parts_;
  LauncherPatience patience_;
  std::string last_said_;
};

}  // namespace ridgeline::driver
