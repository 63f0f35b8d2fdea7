#include "driver/pace.h"

#include <algorithm>

namespace ridgeline {
namespace {

constexpr int64_t kShortestWaitNs = 2'000'000;
constexpr int64_t kLongestWaitNs = 250'000'000;
constexpr int64_t kJobNs = 1'000'000'000;
constexpr int64_t kMostPoints = 128;

}  // namespace

int64_t PollPace::WaitNs(int64_t now_ns) const {
  return std::clamp((now_ns - changed_ns_) / 16, kShortestWaitNs, kLongestWaitNs);
}

void BundleSize::JobEnded(int64_t points, int64_t duration_ns) {
  if (points <= 0) return;
  const int64_t point_ns = std::max<int64_t>(duration_ns / points, 1);
  points_ = std::clamp<int64_t>(kJobNs / point_ns, 1, std::min(2 * points, kMostPoints));
}

}  // namespace ridgeline
