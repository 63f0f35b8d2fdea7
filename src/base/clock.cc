#include "base/clock.h"

#include <ctime>

namespace ridgeline {
namespace {

int64_t Now(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

int64_t SystemClock::MonotonicNs() const { return Now(CLOCK_MONOTONIC); }
int64_t SystemClock::UnixNs() const { return Now(CLOCK_REALTIME); }

void SystemClock::SleepNs(int64_t duration_ns) {
  const timespec t{duration_ns / 1'000'000'000, duration_ns % 1'000'000'000};
  nanosleep(&t, nullptr);
}

}  // namespace ridgeline
