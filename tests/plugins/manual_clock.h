// A launcher's clock that a test advances.
#pragma once

#include <chrono>
#include <cstdint>

#include "common/clock.h"

namespace ridgeline::testing {

class ManualClock final : public plugin::Clock {
 public:
  explicit ManualClock(int64_t unix_s = 1'000'000'000) : unix_s_(unix_s) {}

  Time Now() const override { return now_; }
  int64_t UnixS() const override { return unix_s_; }
  void Later(std::chrono::seconds seconds) {
    now_ += seconds;
    unix_s_ += seconds.count();
  }

 private:
  Time now_ = Time(std::chrono::hours(1));
  int64_t unix_s_;
};

}  // namespace ridgeline::testing
