// The time, as a launcher asks for it. A launcher gets its clock, so a test of its patience need not wait.
#pragma once

#include <chrono>
#include <cstdint>

namespace ridgeline::plugin {

class Clock {
 public:
  using Duration = std::chrono::steady_clock::duration;
  using Time = std::chrono::steady_clock::time_point;

  virtual ~Clock() = default;
  virtual Time Now() const = 0;       // to measure durations
  virtual int64_t UnixS() const = 0;  // to compare with times from others
};

// This machine's clock.
const Clock& SystemClock();

}  // namespace ridgeline::plugin
