// A launcher that does not do what it is asked, for now: said once to who watches, and borne for so long.
#pragma once

#include <string>

#include "base/error.h"
#include "driver/driver.h"
#include "driver/retry_policy.h"

namespace ridgeline {

class Reluctance {
 public:
  // `parts` must outlive it. `launcher_timeout_s` as Launch has it.
  Reluctance(const DriverParts& parts, int64_t launcher_timeout_s)
      : parts_(parts), patience_(launcher_timeout_s * 1'000'000'000) {}

  void Answered() { patience_.Answered(); }

  // Throws the error where that has gone on for too long. What is submitted by then goes on, and the next run finds it.
  void NotAnswered(const Error& error);

 private:
  const DriverParts& parts_;
  LauncherPatience patience_;
  std::string last_said_;
};

}  // namespace ridgeline
