#include "driver/retry_policy.h"

#include <algorithm>

#include "driver/patience.h"

namespace ridgeline::driver {
namespace {

constexpr int kMostDoublings = 10;

}  // namespace

int64_t TryAgainNs(int tries) { return std::min(kTryAgainNs << std::min(tries, kMostDoublings), kMostTryAgainNs); }

bool IsSubmittedAgain(const launch::Submission& refusal, int tries) {
  return refusal.retry || (refusal.error->kind() == ErrorKind::kInfrastructure && tries < kSubmitTries);
}

std::optional<int64_t> PointRetries::RunAgainAfterNs(const std::string& point_id, const RunEnd& end, bool began) {
  const auto limit = limits_.find(end.reason);
  if (limit == limits_.end() || end.status != RunStatus::kInfrastructure) return std::nullopt;
  std::map<InfrastructureReason, int64_t>& retries = retries_[point_id];
  if (!began) return 0;
  if (retries[end.reason] >= limit->second) return std::nullopt;
  ++retries[end.reason];
  if (end.reason == InfrastructureReason::kPreempted) return 0;
  int64_t failures = 0;
  for (const auto& [reason, times] : retries) failures += reason == InfrastructureReason::kPreempted ? 0 : times;
  return std::min(kRunAgainNs << std::min<int64_t>(failures - 1, kMostDoublings), kMostRunAgainNs);
}

bool LauncherPatience::NotAnswered(int64_t now_ns) {
  if (since_ns_ == 0) since_ns_ = now_ns;
  return now_ns - since_ns_ >= limit_ns_;
}

}  // namespace ridgeline::driver
