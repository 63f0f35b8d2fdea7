// When a log got its bytes, seen while it is written: what times the lines of a trainer that prints no times.
#pragma once

#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "trainers/reading.h"

namespace ridgeline {

// Sizes of a log that are kept. Of one that is written to more often, ever fewer are.
inline constexpr size_t kMostSizes = size_t{1} << 20;

// Looks from a thread of its own whenever the kernel says that the file was written to, and 50 times a second in any
// case. So a size is as old as the thread took to wake, mostly far below a millisecond; where the kernel says nothing,
// 20 ms at most, which the resolution says.
class LogGrowth {
 public:
  LogGrowth(const std::filesystem::path& log, const Clock& clock);
  LogGrowth(const LogGrowth&) = delete;
  LogGrowth& operator=(const LogGrowth&) = delete;
  ~LogGrowth();

  // Ends the looking, after a last look.
  const Arrivals& Finish();

 private:
  void Run();
  void Look();

  const std::filesystem::path log_;
  const Clock& clock_;
  Arrivals arrivals_;
  int64_t least_pause_ns_ = 0;  // between sizes that are kept
  int inotify_ = -1;
  int stop_ = -1;  // an eventfd
  std::thread thread_;
};

}  // namespace ridgeline
