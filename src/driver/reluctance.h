// A launcher that does not do what it is asked, for now: said once to who watches, and borne for so long.
#pragma once

#include <string>

#include "base/error.h"
#include "driver/driver.h"
#include "driver/retry_policy.h"

namespace ridgeline {

class Reluctance {
 public:
  // `parts` must outlive it.
  explicit Reluctance(const DriverParts& parts) : parts_(parts) {}

  void Answered() { patience_.Answered(); }

  // Throws the error where that has gone on for too long. What is submitted by then goes on, and the next run finds it.
  void NotAnswered(const Error& error);

 private:
  const DriverParts& parts_;
  LauncherPatience patience_;
  std::string last_said_;
};

}  // namespace ridgeline
