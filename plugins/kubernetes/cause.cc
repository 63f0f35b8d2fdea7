#include "kubernetes/cause.h"

#include <utility>

#include <fmt/format.h>

#include "ridgeline/job_dir.h"

namespace ridgeline::kubernetes {
namespace {

constexpr int64_t kClockMarginS = 5;  // for comparing times in whole seconds

Cause Infrastructure(std::string reason, std::string message, std::string hint = {}) {
  return {"infrastructure", std::move(reason), std::move(message), std::move(hint)};
}

Cause Own(std::string end, std::string message, std::string hint) {
  return {std::move(end), "", std::move(message), std::move(hint)};
}

Cause OfEviction(const PodView& pod, const std::string& why) {
  if (why.find("resource: memory") != std::string::npos && !pod.memory_limited) {
    return Own("oom_host", "evicted, its node ran out of memory: " + why,
               "set memory: to what the point needs, so that it gets a node that has it");
  }
  // The kubelet says "Usage of EmptyDir volume … exceeds the limit", "… ephemeral local storage usage exceeds the total
  // limit", or "exceeded its local ephemeral storage limit".
  const bool of_disk = why.find("EmptyDir volume") != std::string::npos || why.find("ephemeral") != std::string::npos;
  if (of_disk && why.find("exceed") != std::string::npos) {
    return Infrastructure("storage", "filled more of its node's disk than it asked for: " + why,
                          "raise ephemeral_storage: under kubernetes:, or mount a volume for what it writes");
  }
  return Infrastructure("preempted", "evicted by its node" + (why.empty() ? "" : ": " + why),
                        "`kubectl describe node` says more");
}

// The cause if somebody else took the pod away, or its node is gone. Returns nothing if the pod ended by itself.
std::optional<Cause> OfDisruption(const PodView& pod, int64_t now_unix_s) {
  const std::string said = pod.disruption_message.empty() ? pod.message : pod.disruption_message;
  const auto with = [&](const std::string& text) { return said.empty() ? text : text + ": " + said; };
  if (pod.disruption == "PreemptionByScheduler" || pod.reason == "Preempting") {
    return Infrastructure("preempted", with("preempted by a pod of higher priority"));
  }
  if (pod.disruption == "EvictionByEvictionAPI") {
    return Infrastructure("preempted", with("evicted: its node is drained"));
  }
  if (pod.reason == "Evicted" || pod.disruption == "TerminationByKubelet") {
    return OfEviction(pod, pod.message.empty() ? said : pod.message);
  }
  const bool node_gone = pod.disruption == "DeletionByTaintManager" || pod.disruption == "DeletionByPodGC" ||
                         pod.reason == "NodeLost" || pod.reason == "Terminated" || pod.reason == "NodeShutdown" ||
                         pod.reason == "Shutdown";
  const bool rejected = pod.reason == "UnexpectedAdmissionError" || pod.reason == "NodeAffinity" ||
                        pod.reason.starts_with("OutOf") || pod.reason.starts_with("Outof");
  const std::string node = pod.node.empty() ? "its node" : "node " + pod.node;
  if (node_gone) {
    return Infrastructure("node", with(node + " went away"), "`kubectl get node` says whether it is back");
  }
  if (rejected) return Infrastructure("node", with(fmt::format("{} refused the pod ({})", node, pod.reason)));
  if (pod.deleted_unix_s > 0 && !pod.terminated && (IsOverdue(pod, now_unix_s) || pod.node_silent)) {
    return Infrastructure("node", with(node + " does not answer"), "`kubectl get node` says whether it is back");
  }
  return std::nullopt;
}

// The cause if somebody deleted the pod or its Job without a reason.
std::optional<Cause> OfDeletion(const JobView& job, const PodView& pod) {
  if (pod.deleted_unix_s == 0 && pod.phase != kDeletedPhase) return std::nullopt;
  // Deletion in the foreground: the Job goes when its pods have gone.
  if (job.deleting) return OfDeletedJob();
  return Infrastructure("preempted", "its pod was deleted",
                        "by a drain, the scheduler or a person; `kubectl get events` may say which");
}

Cause StartLimit(const std::string& what) {
  return Infrastructure("start", what, "`kubectl describe` of such a Job and of its pods says what they wait for");
}

// When a Job's controller has deleted the pods at the deadline, it may report that late. It may also report another
// reason, because it then sees a failed pod.
bool EndedAtDeadline(const JobView& job, const PodView* decides) {
  if (job.failed && job.reason == kDeadlineExceeded) return true;
  if (job.deadline_s == 0 || job.started_unix_s == 0) return false;
  const int64_t deadline_unix_s = job.started_unix_s + job.deadline_s;
  if (decides != nullptr && decides->deletion_asked_unix_s > 0)
    return decides->deletion_asked_unix_s >= deadline_unix_s;
  const bool is_gone = decides == nullptr || decides->phase == kDeletedPhase;
  return is_gone && job.failed && job.failed_unix_s >= deadline_unix_s;
}

std::optional<Cause> OfDeadline(const JobView& job, const PodSummary& pods, const PodView* decides) {
  if (!EndedAtDeadline(job, decides)) return std::nullopt;
  if (pods.begun >= job.pods) {
    return Own("timeout", "ran past the Job's deadline", "raise time_limit, or make the point smaller");
  }
  if (pods.begun > 0) {
    return StartLimit(fmt::format("{} of its {} pods could start before the Job's deadline", pods.begun, job.pods));
  }
  return StartLimit("no pod of it could start before the Job's deadline");
}

// The pod's deadline covers its start and its run together. A start that took longer than its share has left too little
// time for the run.
Cause OfPodsDeadline(const PodView& pod, const Options& options) {
  if (!pod.HasBegun()) return StartLimit("its container could not start before the pod's deadline");
  const int64_t run_limit_s = pod.deadline_s - options.idle_limit_s;
  const int64_t ran_s = pod.finished_unix_s - pod.started_unix_s;
  if (pod.finished_unix_s > 0 && ran_s + kClockMarginS < run_limit_s) {
    return StartLimit(
        fmt::format("its start took so long that of {} s for its run {} s were left", run_limit_s, ran_s));
  }
  return Own("timeout", "ran past the pod's deadline", "raise time_limit, or make the point smaller");
}

// The cause according to the exit code of `ridgeline exec`, or of what should have started it.
std::optional<Cause> OfExec(const PodView& pod, const std::string& words) {
  const std::string reason(ReasonOfExecExit(pod.exit_code));
  if (reason.empty()) return std::nullopt;
  const std::string node = pod.node.empty() ? "its node" : "node " + pod.node;
  switch (pod.exit_code) {
    case kExecNoStorage:
      return Infrastructure(reason, "`ridgeline exec` could not use its folder" + words,
                            "output: and volumes: name what is there, writable for user:, and has room");
    case kExecRefused:
      return Infrastructure(reason, "the image's `ridgeline exec` does not take this job" + words,
                            "build the image from the Ridgeline that submits to it");
    case kExecCannotStart:
      return Infrastructure(reason, "no trainer can be started in the image" + words,
                            "trainer: names what the image has, and it can be run there");
    case kExecNodeUnfit:
      return Infrastructure(reason, node + " is not as it must be" + words, "`kubectl describe node` may say more");
    default:
      return Infrastructure(reason, "the image cannot start the program" + words,
                            "program: names what the image has and user: may run");
  }
}

std::optional<Cause> OfContainer(const PodView& pod, const Options& options) {
  if (pod.reason == "DeadlineExceeded") return OfPodsDeadline(pod, options);
  if (!pod.terminated) {
    if (pod.phase != "Failed") return std::nullopt;
    return Infrastructure("start",
                          pod.init_container.empty()
                              ? "its container was never started"
                              : fmt::format("the container {}, which comes before ours, failed", pod.init_container),
                          fmt::format("`kubectl describe pod {}` says more, while the pod exists", pod.name));
  }
  const std::string words = pod.last_words.empty() ? "" : ": " + pod.last_words.substr(0, 200);
  if (pod.terminated_reason == "OOMKilled") {
    return Own("oom_host", "the pod held more memory than its limit, and was killed",
               "raise memory_limit, use more activation checkpointing, or a smaller batch");
  }
  if (pod.terminated_reason == "StartError" || pod.terminated_reason == "ContainerCannotRun") {
    return Infrastructure(
        "start", "the image cannot start the program" + words,
        "program: names what the image has instead; the Containerfile that ships with Ridgeline has it");
  }
  if (pod.exit_code == 0 || pod.exit_code == kExecInterrupted) return std::nullopt;
  if (auto cause = OfExec(pod, words)) return cause;
  // `ridgeline exec` ends well however its points end, so no point caused this.
  return Infrastructure("lost",
                        fmt::format("the pod ended with exit code {}{}", pod.exit_code,
                                    pod.exit_code > 128 ? fmt::format(" (signal {})", pod.exit_code - 128) : ""),
                        "the end of its log is with the result");
}

}  // namespace

Cause OfDeletedJob() {
  return Own("cancelled", "somebody deleted the Job", "`ridgeline run` with the same sweep runs its points again");
}

std::optional<Cause> CauseOf(const JobView& job, const PodSummary& pods, const PodView* decides, const Options& options,
                             int64_t now_unix_s) {
  const bool all_succeeded = pods.succeeded >= job.pods;  // whatever happened to containers beside ours
  const bool taken_away = decides != nullptr && !HasSucceeded(*decides) && decides->terminated_reason != "OOMKilled";
  std::optional<Cause> cause = taken_away ? OfDisruption(*decides, now_unix_s) : std::nullopt;
  // The controller deletes the pods of a Job at its deadline.
  if (!cause && !all_succeeded) cause = OfDeadline(job, pods, decides);
  if (!cause && taken_away) cause = OfDeletion(job, *decides);
  if (!cause && decides != nullptr) cause = OfContainer(*decides, options);
  const bool interrupted = decides != nullptr && decides->exit_code == kExecInterrupted;
  if (!cause && job.failed && !all_succeeded && !interrupted) {
    cause = Infrastructure("lost", fmt::format("the Job failed ({}): {}", job.reason, job.message));
  }
  return cause;
}

}  // namespace ridgeline::kubernetes
