// Progress of a pass over many points, for a person at a terminal: one line of the standard error that overwrites
// itself and is erased at the end. Prints nothing if there is no terminal, and nothing during the first second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace ridgeline {

class CountingLine {
 public:
  using Writer = std::function<void(std::string_view bytes)>;

  // `doing`: what happens to the points, such as "planning".
  explicit CountingLine(std::string doing);
  CountingLine(std::string doing, const Clock& clock, bool live, Writer write);
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
  const bool live_;
  const Writer write_;
  const int64_t begin_ns_;
  int64_t written_ns_ = 0;  // 0: the line is not shown
};

}  // namespace ridgeline
