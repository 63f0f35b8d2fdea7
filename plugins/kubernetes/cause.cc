#include "kubernetes/cause.h"

#include <fmt/format.h>

#include "kubernetes/pods.h"
#include "ridgeline/job_dir.h"

namespace ridgeline::kubernetes {
namespace {

// Somebody else took the pod away, or its node is gone; nothing where it came to its own end.
std::optional<Cause> OfDisruption(const PodView& pod, int64_t now_unix_s) {
  const std::string said = pod.disruption_message.empty() ? pod.message : pod.disruption_message;
  const auto with = [&](const std::string& text) { return said.empty() ? text : text + ": " + said; };
  if (pod.disruption == "PreemptionByScheduler" || pod.reason == "Preempting") {
    return Cause{"preempted", with("preempted by a pod of higher priority"), ""};
  }
  if (pod.disruption == "EvictionByEvictionAPI") return Cause{"preempted", with("evicted: its node is drained"), ""};
  if (pod.reason == "Evicted" || pod.disruption == "TerminationByKubelet") {
    const std::string why = pod.message.empty() ? said : pod.message;
    if (why.find("resource: memory") != std::string::npos) {
      return Cause{"oom_host", "evicted, its node ran out of memory: " + why,
                   "set memory: to what the point needs, so that it gets a node that has it"};
    }
    // "Usage of EmptyDir volume … exceeds the limit", "… ephemeral local storage usage exceeds the total limit", and
    // "exceeded its local ephemeral storage limit": its own doing, and it would do so again.
    const bool of_disk = why.find("EmptyDir volume") != std::string::npos || why.find("ephemeral") != std::string::npos;
    if (of_disk && why.find("exceed") != std::string::npos) {
      return Cause{"crashed", "filled more of its node's disk than it asked for: " + why,
                   "raise ephemeral_storage: under kubernetes:, or mount a volume for what it writes"};
    }
    return Cause{"preempted", "evicted by its node" + (why.empty() ? "" : ": " + why),
                 "`kubectl describe node` says more"};
  }
  const bool node_gone = pod.disruption == "DeletionByTaintManager" || pod.disruption == "DeletionByPodGC" ||
                         pod.reason == "NodeLost" || pod.reason == "Terminated" || pod.reason == "NodeShutdown" ||
                         pod.reason == "Shutdown";
  const bool rejected = pod.reason == "UnexpectedAdmissionError" || pod.reason == "NodeAffinity" ||
                        pod.reason.starts_with("OutOf") || pod.reason.starts_with("Outof");
  const std::string node = pod.node.empty() ? "its node" : "node " + pod.node;
  if (node_gone) return Cause{"node_failed", with(node + " went away"), "`kubectl get node` says whether it is back"};
  if (rejected) return Cause{"node_failed", with(fmt::format("{} refused the pod ({})", node, pod.reason)), ""};
  if (pod.deleted_unix_s > 0 && !pod.terminated && (IsOverdue(pod, now_unix_s) || pod.node_silent)) {
    return Cause{"node_failed", with(node + " does not answer"), "`kubectl get node` says whether it is back"};
  }
  return std::nullopt;
}

// By somebody who does not say why.
std::optional<Cause> OfDeletion(const PodView& pod) {
  if (pod.deleted_unix_s == 0 && pod.phase != kDeletedPhase) return std::nullopt;
  return Cause{"preempted", "its pod was deleted",
               "by a drain, the scheduler or a person; `kubectl get events` may say which"};
}

std::optional<Cause> OfDeadline(const JobView& job, bool started) {
  if (!job.failed || job.reason != "DeadlineExceeded") return std::nullopt;
  if (started) {
    return Cause{"timeout", "ran past the Job's deadline", "raise time_limit, or make the point smaller"};
  }
  return Cause{"timeout", "no pod of it could start before the Job's deadline",
               "`kubectl describe` of such a Job says what it waits for"};
}

std::optional<Cause> OfContainer(const PodView& pod) {
  if (pod.reason == "DeadlineExceeded") {
    return Cause{"timeout", "ran past the pod's deadline", "raise time_limit, or make the point smaller"};
  }
  if (!pod.terminated) return std::nullopt;
  const std::string words = pod.last_words.empty() ? "" : ": " + pod.last_words.substr(0, 200);
  if (pod.terminated_reason == "OOMKilled") {
    return Cause{"oom_host", "the pod held more memory than its limit, and was killed",
                 "raise memory_limit, use more activation checkpointing, or a smaller batch"};
  }
  if (pod.terminated_reason == "StartError" || pod.terminated_reason == "ContainerCannotRun") {
    return Cause{"invalid", "the image cannot start the program" + words,
                 "program: names what the image has instead; the Containerfile that ships with Ridgeline has it"};
  }
  if (pod.exit_code == 0 || pod.exit_code == kExecInterrupted) return std::nullopt;
  return Cause{"crashed",
               fmt::format("the pod ended with exit code {}{}", pod.exit_code,
                           pod.exit_code > 128 ? fmt::format(" (signal {})", pod.exit_code - 128) : ""),
               "the end of its log is with the result"};
}

}  // namespace

std::optional<Cause> CauseOf(const JobView& job, const PodView* decides, bool started, int64_t now_unix_s) {
  const bool taken_away = decides != nullptr && !HasSucceeded(*decides) && decides->terminated_reason != "OOMKilled";
  std::optional<Cause> cause = taken_away ? OfDisruption(*decides, now_unix_s) : std::nullopt;
  // The controller deletes the pods of a Job that is past its deadline.
  if (!cause) cause = OfDeadline(job, started);
  if (!cause && taken_away) cause = OfDeletion(*decides);
  if (!cause && decides != nullptr) cause = OfContainer(*decides);
  if (!cause && job.failed && (decides == nullptr || decides->exit_code != kExecInterrupted)) {
    cause = Cause{"crashed", fmt::format("the Job failed ({}): {}", job.reason, job.message), ""};
  }
  return cause;
}

}  // namespace ridgeline::kubernetes
