// The time as a launcher asks for it: handed in, so that a test need not wait until a launcher's patience has ended.
#pragma once

#include <chrono>
#include <cstdint>

namespace ridgeline::plugin {

class Clock {
 public:
  using Duration = std::chrono::steady_clock::duration;
  using Time = std::chrono::steady_clock::time_point;

  virtual ~Clock() = default;
  virtual Time Now() const = 0;       // for how long something lasts
  virtual int64_t UnixS() const = 0;  // for when something was, as others write it
};

// This machine's.
const Clock& SystemClock();

}  // namespace ridgeline::plugin
