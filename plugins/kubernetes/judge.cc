#include "kubernetes/judge.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "kubernetes/cause.h"
#include "kubernetes/wait.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::AddEnd;
using plugin::Evidence;
using plugin::Phase;

Judgement Make(Phase phase, int64_t started_unix_s = 0, Evidence evidence = {}) {
  Judgement judgement;
  judgement.phase = phase;
  judgement.started_unix_s = started_unix_s;
  judgement.evidence = std::move(evidence);
  return judgement;
}

void AddPod(const PodView& pod, Evidence& evidence) {
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) evidence[name] = value;
  };
  add("pod", pod.name);
  add("node", pod.node);
  add("pod_index", pod.index);
  add("pod_reason", pod.reason);
  add("pod_message", pod.message);
  add("disruption", pod.disruption);
  add("container_reason", pod.terminated_reason == "Completed" ? "" : pod.terminated_reason);
  add("image_id", pod.image_id);
  if (pod.terminated) plugin::AddExit(pod.exit_code, 0, evidence);
  plugin::AddQueueWait(pod.created_unix_s, pod.started_unix_s, evidence);
}

Judgement OfEnd(const Observation& seen, const PodSummary& pods) {
  Judgement judgement = Make(Phase::kEnded, pods.started_unix_s, {{"kubernetes_job", seen.job.name}});
  judgement.awaits_logs = true;
  if (!seen.job.reason.empty()) judgement.evidence["job_reason"] = seen.job.reason;
  const PodView* decides = pods.decides != nullptr ? pods.decides : pods.first;
  if (decides != nullptr) AddPod(*decides, judgement.evidence);
  const std::optional<Cause> cause = CauseOf(seen.job, decides, pods.started_unix_s > 0, seen.unix_s);
  if (cause) AddEnd(cause->end, cause->message, cause->hint, judgement.evidence);
  return judgement;
}

Judgement OfWaiting(const Observation& seen, const PodSummary& pods, const Options& options) {
  std::optional<Wait> wait;
  if (!seen.refusal.empty()) wait = WaitOfRefusal(seen.refusal);
  if (pods.first != nullptr) wait = WaitOf(*pods.first, std::chrono::seconds(options.start_timeout_s));
  if (!wait) return Make(Phase::kQueued);
  const std::string message = fmt::format("Job {}: {}", seen.job.name, wait->message);
  if (!wait->patience || seen.stalled_for < *wait->patience) {
    return Make(Phase::kQueued, 0, {{"waits", message}, {"hint", wait->hint}});
  }
  Judgement given_up = Make(Phase::kEnded, 0, {{"kubernetes_job", seen.job.name}});
  AddEnd("invalid", message, wait->hint, given_up.evidence);
  return given_up;
}

// It goes when its pods have gone, and these when their node says so.
Judgement OfCancelled(const Observation& seen, const PodSummary& pods, bool over) {
  if (!over || seen.pods.empty() || !seen.job.deleting) {
    return Make(pods.started_unix_s > 0 ? Phase::kRunning : Phase::kQueued, pods.started_unix_s);
  }
  Judgement judgement = OfEnd(seen, pods);
  judgement.awaits_logs = false;
  AddEnd("cancelled", "the job was cancelled", "", judgement.evidence);
  return judgement;
}

// Of a Job that was there and is not.
Judgement OfGone(const Record& record, const Observation& seen, int64_t ttl_s) {
  Judgement judgement = Make(Phase::kEnded, 0, {{"kubernetes_job", record.key}});
  if (record.cancelled) {
    AddEnd("cancelled", "the job was cancelled", "", judgement.evidence);
  } else if (seen.unix_s - record.created_unix_s > ttl_s) {
    AddEnd("lost", "the Job is gone, as finished Jobs are after their TTL", "ttl: keeps them for longer",
           judgement.evidence);
  } else {
    AddEnd("cancelled", "somebody deleted the Job", "`ridgeline run` with the same sweep runs its points again",
           judgement.evidence);
  }
  return judgement;
}

Judgement OfThere(const Record& record, const Observation& seen, const Options& options) {
  const PodSummary pods = Summarize(seen.pods, seen.unix_s);
  const bool over = seen.job.complete || seen.job.failed || pods.decides != nullptr;
  if (record.cancelled) return OfCancelled(seen, pods, over);
  if (over) return OfEnd(seen, pods);
  if (pods.running) return Make(Phase::kRunning, pods.started_unix_s);
  return OfWaiting(seen, pods, options);
}

}  // namespace

Judgement Judge(const Record& record, const Observation& seen, const Options& options) {
  if (record.ended) return Make(Phase::kEnded, record.started_unix_s, record.evidence);
  switch (seen.presence) {
    case Observation::Presence::kUnasked:
      break;
    case Observation::Presence::kUnheard:
      return Make(Phase::kQueued);
    case Observation::Presence::kGone:
      return OfGone(record, seen, options.ttl_s);
    case Observation::Presence::kThere:
      return OfThere(record, seen, options);
  }
  return Make(Phase::kMissing);
}

}  // namespace ridgeline::kubernetes
