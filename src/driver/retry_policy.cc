#include "driver/retry_policy.h"

#include <algorithm>

#include "driver/patience.h"

namespace ridgeline {

int64_t TryAgainNs(int tries) {
  constexpr int kMostDoublings = 10;
  return std::min(kTryAgainNs << std::min(tries, kMostDoublings), kMostTryAgainNs);
}

bool IsSubmittedAgain(const Submission& refusal, int tries) {
  return refusal.retry || (refusal.error->kind() == ErrorKind::kInfrastructure && tries < kSubmitTries);
}

bool PointRetries::RunAgain(const std::string& point_id, RunStatus status, bool began) {
  const auto limit = limits_.find(status);
  if (limit == limits_.end()) return false;
  int64_t& retries = retries_[point_id][status];
  if (began && retries >= limit->second) return false;
  if (began) ++retries;
  return true;
}

bool LauncherPatience::NotAnswered(int64_t now_ns) {
  if (since_ns_ == 0) since_ns_ = now_ns;
  return now_ns - since_ns_ >= limit_ns_;
}

}  // namespace ridgeline
