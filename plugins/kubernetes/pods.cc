#include "kubernetes/pods.h"

#include <optional>

#include "kubernetes/wait.h"

namespace ridgeline::kubernetes {
namespace {

// Where one pod of several fails, the others are deleted.
bool DecidesBefore(const PodView& pod, const PodView& other) {
  const bool own_end = pod.deleted_unix_s == 0 && pod.phase == "Failed";
  const bool others_own_end = other.deleted_unix_s == 0 && other.phase == "Failed";
  return own_end != others_own_end ? own_end : pod.created_unix_s < other.created_unix_s;
}

}  // namespace

bool HasSucceeded(const PodView& pod) { return pod.phase == "Succeeded" && pod.exit_code == 0; }

PodSummary Summarize(const Pods& pods, int64_t now_unix_s) {
  PodSummary summary;
  for (const auto& [name, pod] : pods) {
    if (summary.first == nullptr || pod.created_unix_s < summary.first->created_unix_s) summary.first = &pod;
    summary.running = summary.running || pod.running;
    if (pod.started_unix_s > 0 && (summary.started_unix_s == 0 || pod.started_unix_s < summary.started_unix_s)) {
      summary.started_unix_s = pod.started_unix_s;
    }
    if (!HasEnded(pod, now_unix_s) || HasSucceeded(pod)) continue;
    if (summary.decides == nullptr || DecidesBefore(pod, *summary.decides)) summary.decides = &pod;
  }
  return summary;
}

Stall StallOf(const JobView& job, const Pods& pods, int64_t now_unix_s) {
  const PodSummary summary = Summarize(pods, now_unix_s);
  if (job.complete || job.failed || summary.decides != nullptr || summary.running) return Stall::kNone;
  if (summary.first == nullptr) return Stall::kNoPod;
  const std::optional<Wait> wait = WaitOf(*summary.first, {});
  return wait && wait->patience ? Stall::kContainer : Stall::kNone;
}

}  // namespace ridgeline::kubernetes
