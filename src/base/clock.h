// Time, as a parameter so that tests can change it.
#pragma once

#include <cstdint>

namespace ridgeline {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t MonotonicNs() const = 0;        // for durations
  virtual int64_t UnixNs() const = 0;             // wall time since 1970
  virtual void SleepNs(int64_t duration_ns) = 0;  // may return early on a signal
};

class SystemClock final : public Clock {
 public:
  int64_t MonotonicNs() const override;
  int64_t UnixNs() const override;
  void SleepNs(int64_t duration_ns) override;
};

// Sleeping advances it; nothing waits.
class FakeClock final : public Clock {
 public:
  int64_t MonotonicNs() const override { return now_ns_; }
  int64_t UnixNs() const override { return now_ns_; }
  void SleepNs(int64_t duration_ns) override { now_ns_ += duration_ns; }

 private:
  int64_t now_ns_ = 1'000'000'000;
};

}  // namespace ridgeline
