#include "driver/pace.h"

#include <algorithm>

#include "driver/patience.h"

namespace ridgeline::driver {
int64_t PollPace::WaitNs(int64_t now_ns) const {
  return std::clamp((now_ns - changed_ns_) / 16, kShortestWaitNs, kLongestWaitNs);
}

int64_t PauseAfterAskingNs(int64_t wish_ns, int64_t took_ns) {
  return std::max(wish_ns, std::min(took_ns * kAskShare, kMostPauseNs));
}

}  // namespace ridgeline::driver
