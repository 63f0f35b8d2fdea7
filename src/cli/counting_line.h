// How far a look at many points has come, for who waits at a terminal: one line of the standard error, which is written
// over itself and gone in the end. Nothing where there is no terminal, and nothing of the first second.
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

  // `doing`: what is done to the points, "planning".
  explicit CountingLine(std::string doing);
  CountingLine(std::string doing, const Clock& clock, bool live, Writer write);
  CountingLine(const CountingLine&) = delete;
  CountingLine& operator=(const CountingLine&) = delete;
  ~CountingLine();

  // As often as it likes to be said: it looks at the clock, and seldom writes.
  void At(size_t done, size_t points);
  // The same where nobody knows how many there will be.
  void At(size_t done);

 private:
  static const Clock& TheClock();
  bool IsTime();

  const std::string doing_;
  const Clock& clock_;
  const bool live_;
  const Writer write_;
  const int64_t begin_ns_;
  int64_t written_ns_ = 0;  // 0: nothing is shown
};

}  // namespace ridgeline
