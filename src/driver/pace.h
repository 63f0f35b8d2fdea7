// How often the driver asks: enough that the harness never costs more than a small share of what it measures.
#pragma once

#include <cstdint>

namespace ridgeline {

// Waiting between two questions: a sixteenth of the time since anything last happened, from 2 ms to 250 ms.
class PollPace {
 public:
  explicit PollPace(int64_t now_ns) : changed_ns_(now_ns) {}
  void Changed(int64_t now_ns) { changed_ns_ = now_ns; }
  int64_t WaitNs(int64_t now_ns) const;

 private:
  int64_t changed_ns_;
};

// How long a launcher is left alone that took so long to answer: as long as it wishes, and longer where answers take
// their time.
int64_t PauseAfterAskingNs(int64_t wish_ns, int64_t took_ns);

}  // namespace ridgeline
