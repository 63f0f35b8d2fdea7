// Waits in tests for events.
#pragma once

#include <unistd.h>

#include <chrono>

namespace ridgeline::testing {

// Waits until `condition` holds. Returns false if it never did within the time limit, which is longer than the busiest
// machine takes, and less than a test has.
template <typename Condition>
bool Eventually(Condition condition) {
  constexpr std::chrono::seconds kLimit{150};
  const auto end = std::chrono::steady_clock::now() + kLimit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    ::usleep(10'000);
  }
  return true;
}

}  // namespace ridgeline::testing
