// Progress of a pass over many points, for a person at a terminal: one line that overwrites itself and is erased at the
// end. Shows nothing during the first second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"

namespace ridgeline::driver {

class CountingLine {
 public:
  // Shows a line in place of the one before; an empty line erases it.
  using Show = std::function<void(const std::string& line)>;

  // `doing`: what happens to the points, such as "planning". Shows it on the standard error, if that is a terminal.
  explicit CountingLine(std::string doing);
  // Both must outlive it.
  CountingLine(std::string doing, const Clock& clock, Show show);
  CountingLine(const CountingLine&) = delete;
  CountingLine& operator=(const CountingLine&) = delete;
  ~CountingLine();

  // Call it as often as you like. It checks the clock and seldom writes.
  void At(size_t done, size_t points);
  // The same if the total is unknown.
  void At(size_t done);

 private:
  static const Clock& TheClock();
  bool IsTime();

  const std::string doing_;
  const Clock& clock_;
  const Show show_;
  const int64_t begin_ns_;
  int64_t written_ns_ = 0;  // 0: the line is not shown
};

}  // namespace ridgeline::driver
