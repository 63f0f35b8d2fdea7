#include "driver/pace.h"

#include <algorithm>

namespace ridgeline {
namespace {

constexpr int64_t kShortestWaitNs = 2'000'000;
constexpr int64_t kLongestWaitNs = 250'000'000;

}  // namespace

int64_t PollPace::WaitNs(int64_t now_ns) const {
  return std::clamp((now_ns - changed_ns_) / 16, kShortestWaitNs, kLongestWaitNs);
}

}  // namespace ridgeline
