// How often the driver asks. The harness must cost only a small share of what it measures.
#pragma once

#include <cstdint>

namespace ridgeline::driver {

// The wait between two questions: a sixteenth of the time since something last happened, from 2 ms to 250 ms.
class PollPace {
 public:
  explicit PollPace(int64_t now_ns) : changed_ns_(now_ns) {}
  void Changed(int64_t now_ns) { changed_ns_ = now_ns; }
  int64_t WaitNs(int64_t now_ns) const;

 private:
  int64_t changed_ns_;
};

// Returns for how long somebody who only looks leaves a launcher alone after an answer that took `took_ns`: as long as
// it wishes, and longer if answers take long.
int64_t PauseAfterAskingNs(int64_t wish_ns, int64_t took_ns);

}  // namespace ridgeline::driver
