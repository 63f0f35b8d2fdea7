// Records when a log grew, while it is written. This gives times to the lines of a trainer that prints none.
#pragma once

#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "trainers/reading.h"

namespace ridgeline::node {

// The most sizes of a log that are kept. If a log is written to more often, they are thinned out.
inline constexpr size_t kMostSizes = size_t{1} << 20;

// A thread looks whenever the kernel reports a write to the file, and 50 times a second in any case. So a size is as
// old as the thread took to wake, mostly far below a millisecond. If the kernel reports nothing, it is at most 20 ms
// old, which the resolution states.
class LogGrowth {
 public:
  LogGrowth(const std::filesystem::path& log, const Clock& clock);
  LogGrowth(const LogGrowth&) = delete;
  LogGrowth& operator=(const LogGrowth&) = delete;
  ~LogGrowth();

  // Stops the thread after a last look.
  const trainers::Arrivals& Finish();

 private:
  void Run();
  void Look();

  const std::filesystem::path log_;
  const Clock& clock_;
  trainers::Arrivals arrivals_;
  int64_t least_pause_ns_ = 0;  // smallest time between kept sizes
  int inotify_ = -1;
  int stop_ = -1;  // an eventfd
  std::thread thread_;
};

}  // namespace ridgeline::node
