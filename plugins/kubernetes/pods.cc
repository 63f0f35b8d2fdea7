#include "kubernetes/pods.h"

#include <algorithm>
#include <charconv>
#include <tuple>

namespace ridgeline::kubernetes {
namespace {

// If one pod of several fails, or its node is lost, the others are deleted without a reason. So pods with an own end
// rank first, then pods with a reason.
int RankOf(const PodView& pod) {
  const bool own_end = pod.deleted_unix_s == 0 && (pod.terminated || pod.phase == "Failed");
  if (own_end) return 0;
  const bool said_why = !pod.disruption.empty() || !pod.reason.empty() || pod.node_silent;
  return said_why ? 1 : 2;
}
bool DecidesBefore(const PodView& pod, const PodView& other) {
  return std::tuple(RankOf(pod), pod.created_unix_s) < std::tuple(RankOf(other), other.created_unix_s);
}

// The Job's controller replaces a pod that the cluster takes away, under the same index. The pod that succeeded counts,
// else the newest.
bool CountsInsteadOf(const PodView& other, const PodView& pod) {
  return std::tuple(HasSucceeded(pod), pod.created_unix_s, pod.name) >
         std::tuple(HasSucceeded(other), other.created_unix_s, other.name);
}

// Returns the pods that count, by index.
std::map<std::string, const PodView*> OfEachIndex(const Pods& pods) {
  std::map<std::string, const PodView*> counted;
  for (const auto& [name, pod] : pods) {
    const PodView*& of_index = counted[pod.index];
    if (of_index == nullptr || CountsInsteadOf(*of_index, pod)) of_index = &pod;
  }
  return counted;
}

int64_t IndexOf(const PodView& pod) {
  int64_t index = 0;
  std::from_chars(pod.index.data(), pod.index.data() + pod.index.size(), index);
  return index;
}

}  // namespace

std::string KeyOf(const PodView& pod) { return pod.uid.empty() ? pod.name : pod.name + '/' + pod.uid; }

bool HasSucceeded(const PodView& pod) { return pod.terminated ? pod.exit_code == 0 : pod.phase == "Succeeded"; }

PodSummary Summarize(const Pods& pods, int64_t now_unix_s) {
  PodSummary summary;
  for (const auto& [index, counted] : OfEachIndex(pods)) {
    const PodView& pod = *counted;
    if (summary.first == nullptr || pod.created_unix_s < summary.first->created_unix_s) summary.first = &pod;
    if (pod.HasBegun()) ++summary.begun;
    if (HasSucceeded(pod)) ++summary.succeeded;
    summary.started_unix_s = std::max(summary.started_unix_s, pod.started_unix_s);
    summary.finished_unix_s = std::max(summary.finished_unix_s, pod.finished_unix_s);
    const bool ended = HasEnded(pod, now_unix_s);
    if (HasSucceeded(pod) || (!ended && pod.deleted_unix_s == 0)) continue;
    summary.any_failed = summary.any_failed || ended;
    if (summary.decides == nullptr || DecidesBefore(pod, *summary.decides)) summary.decides = &pod;
  }
  return summary;
}

std::vector<const PodView*> InOrder(const Pods& pods) {
  std::vector<const PodView*> ordered;
  for (const auto& [name, pod] : pods) ordered.push_back(&pod);
  std::sort(ordered.begin(), ordered.end(), [](const PodView* a, const PodView* b) {
    return std::tuple(IndexOf(*a), a->name) < std::tuple(IndexOf(*b), b->name);
  });
  return ordered;
}

Stage StageOf(const JobView& job, const Pods& pods, int64_t now_unix_s) {
  const PodSummary summary = Summarize(pods, now_unix_s);
  if (job.complete || job.failed) return Stage::kOver;
  if (job.suspended) return Stage::kSuspended;
  if (summary.any_failed || summary.succeeded >= job.pods) return Stage::kOver;
  if (summary.begun >= job.pods) return Stage::kRunning;
  if (pods.empty()) return Stage::kNoPod;
  const bool placed = std::any_of(pods.begin(), pods.end(), [](const auto& pod) { return !pod.second.node.empty(); });
  return placed ? Stage::kStarting : Stage::kQueued;
}

}  // namespace ridgeline::kubernetes
