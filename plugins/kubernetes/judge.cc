#include "kubernetes/judge.h"

#include <algorithm>
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
using plugin::AddInfrastructure;
using plugin::Evidence;
using plugin::Phase;
using std::chrono::seconds;

constexpr seconds kRefusedPatience{10};  // a new namespace lacks its service account for a moment

Judgement Make(Phase phase, int64_t started_unix_s = 0, Evidence evidence = {}) {
  Judgement judgement;
  judgement.phase = phase;
  judgement.started_unix_s = started_unix_s;
  judgement.evidence = std::move(evidence);
  return judgement;
}

// Returns "OOMKilled, exit code 137", or "Running".
std::string EndOf(const PodView& pod) {
  std::string text = pod.terminated || pod.waiting.empty() ? "" : pod.waiting;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  };
  add(pod.reason);
  add(pod.disruption);
  if (pod.terminated) {
    if (pod.terminated_reason != "Completed" && pod.terminated_reason != "Error") add(pod.terminated_reason);
    add(fmt::format("exit code {}", pod.exit_code));
  }
  return text.empty() ? pod.phase : text;
}

// Adds evidence about the pods of all ranks. `most` is the pod that decides, or stands for all.
void AddPods(const Pods& pods, const PodView& most, Evidence& evidence) {
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) evidence[name] = value;
  };
  std::string nodes = most.node;
  std::string all;
  for (const PodView* pod : InOrder(pods)) {
    all += fmt::format("{}{} {} on {}: {}", all.empty() ? "" : "; ", pod->index, pod->name,
                       pod->node.empty() ? "no node" : pod->node, EndOf(*pod));
    if (!pod->node.empty() && (' ' + nodes + ' ').find(' ' + pod->node + ' ') == std::string::npos) {
      nodes += (nodes.empty() ? "" : " ") + pod->node;
    }
  }
  if (pods.size() > 1) evidence["pods"] = all;
  add("pod", most.name);
  add("node", nodes);
  add("pod_index", most.index);
  add("pod_reason", most.reason);
  add("pod_message", most.message);
  add("disruption", most.disruption);
  add("container_reason", most.terminated_reason == "Completed" ? "" : most.terminated_reason);
  add("image_id", most.image_id);
  add("resources", most.resources);
  add("qos", most.qos);
  if (most.terminated) plugin::AddExit(most.exit_code, 0, evidence);
  plugin::AddQueueWait(most.created_unix_s, most.started_unix_s, evidence);
}

// Returns when the last container ended. If no container reported that, returns when the controller took the Job to
// have ended.
int64_t EndedUnixS(const JobView& job, const PodSummary& pods) {
  if (pods.finished_unix_s > 0) return pods.finished_unix_s;
  return job.failed ? job.failed_unix_s : job.completed_unix_s;
}

Judgement OfEnd(const Observation& seen, const PodSummary& pods, const Options& options) {
  Judgement judgement = Make(Phase::kEnded, pods.started_unix_s, {{"kubernetes_job", seen.job.name}});
  judgement.awaits_logs = true;
  if (!seen.job.reason.empty()) judgement.evidence["job_reason"] = seen.job.reason;
  const PodView* decides = pods.decides != nullptr ? pods.decides : pods.first;
  if (decides != nullptr) AddPods(seen.pods, *decides, judgement.evidence);
  if (const int64_t ended_unix_s = EndedUnixS(seen.job, pods); ended_unix_s > 0) {
    judgement.evidence["ended_unix_s"] = std::to_string(ended_unix_s);
  }
  const std::optional<Cause> cause = CauseOf(seen.job, pods, decides, options, seen.unix_s);
  if (!cause) return judgement;
  if (cause->reason.empty()) {
    AddEnd(cause->end, cause->message, cause->hint, judgement.evidence);
  } else {
    AddInfrastructure(cause->reason, cause->message, cause->hint, judgement.evidence);
  }
  // In a gang only the pod that failed names a node; the others are not at fault.
  if (cause->reason == "node" && decides != nullptr && !decides->node.empty()) {
    judgement.evidence["node"] = decides->node;
  }
  return judgement;
}

Wait OfSuspended(const Options& options) {
  if (!options.queue.empty()) {
    return {"start", "it is suspended until Kueue admits it",
            fmt::format("`kubectl describe localqueue {}` says how full the queue is", options.queue)};
  }
  return {"start", "it is suspended",
          fmt::format("to resume it, set {} to false in the {}", options.kind->suspend, options.kind->name)};
}

// Returns the wait of the first pod that has not begun and says why. A pod that never starts by itself comes first.
std::optional<std::pair<const PodView*, Wait>> FirstWait(const Observation& seen) {
  std::optional<std::pair<const PodView*, Wait>> first;
  for (const PodView* pod : InOrder(seen.pods)) {
    if (pod->HasBegun()) continue;
    const auto event = seen.events.find(pod->name);
    const std::optional<Wait> wait = WaitOf(*pod, event == seen.events.end() ? PodEvent() : event->second);
    if (wait && (!first || (wait->hopeless && !first->second.hopeless))) first = {pod, *wait};
  }
  return first;
}

// The scheduler of the gang knows more than its pods do.
Wait OfGroup(const Observation& seen) {
  return {
      "start", "its gang is not scheduled: " + seen.group,
      fmt::format("it starts when all its pods have room; `kubectl describe podgroup {}` may say more", seen.job.name)};
}

// Returns what a Job waits for that does not run. Half a gang holds its nodes for nothing, and the message says that
// too.
std::optional<Wait> WaitOfJob(const Observation& seen, const PodSummary& pods, const Options& options) {
  if (seen.stage == Stage::kSuspended) return OfSuspended(options);
  if (!seen.group.empty() && seen.refusal.empty()) return OfGroup(seen);
  std::optional<Wait> wait;
  std::string who;
  if (const auto of_pod = FirstWait(seen)) {
    wait = of_pod->second;
    who = of_pod->first->name + ": ";
  } else if (!seen.refusal.empty()) {
    wait = WaitOfRefusal(seen.refusal);
  }
  if (!wait || pods.begun == 0) return wait;
  wait->message = fmt::format("{} of {} pods run, and the others are waited for: {}{}", pods.begun, seen.job.pods, who,
                              wait->message);
  if (wait->reason == "start")
    wait->hint = "queue: gives such Jobs to Kueue, and gangs: to another scheduler, which starts all pods or none";
  return wait;
}

std::string SubjectOfJob(const Observation& seen, const Wait& wait) {
  if (!seen.group.empty() && seen.refusal.empty()) return SubjectOf(wait, "");
  const auto of_pod = FirstWait(seen);
  return of_pod ? SubjectOf(of_pod->second, of_pod->first->image) : SubjectOf(wait, "");
}

// Returns nothing while the Job may still be waited for; else for how long it was, in words.
std::optional<std::string> WhyGivenUp(const Observation& seen, const std::optional<Wait>& wait,
                                      const Options& options) {
  if (wait && wait->hopeless && (seen.stage != Stage::kNoPod || seen.stage_for >= kRefusedPatience)) return "";
  if (seen.stage == Stage::kStarting && seen.stage_for >= seconds(options.idle_limit_s)) {
    return fmt::format(", for longer than idle_limit, {} s, while it held a node", options.idle_limit_s);
  }
  if (seen.stage != Stage::kSuspended && seen.waiting_for_s >= options.start_limit_s) {
    return fmt::format(", for longer than start_limit, {} s", options.start_limit_s);
  }
  return std::nullopt;
}

Judgement OfWaiting(const Observation& seen, const PodSummary& pods, const Options& options) {
  const std::optional<Wait> wait = WaitOfJob(seen, pods, options);
  const std::optional<std::string> given_up = WhyGivenUp(seen, wait, options);
  if (!given_up) {
    if (!wait) return Make(Phase::kQueued);
    Evidence evidence = {{"waits", fmt::format("Job {}: {}", seen.job.name, wait->message)},
                         {"waits_for", SubjectOfJob(seen, *wait)},
                         {"hint", wait->hint}};
    if (wait->no_node) evidence["no_node"] = wait->message;
    return Make(Phase::kQueued, 0, std::move(evidence));
  }
  Judgement judgement = Make(Phase::kEnded, 0, {{"kubernetes_job", seen.job.name}});
  if (pods.first != nullptr) {
    const auto waits = FirstWait(seen);
    AddPods(seen.pods, waits ? *waits->first : *pods.first, judgement.evidence);
  }
  const Wait last = wait.value_or(Wait{"start", "its pods do not start", "`kubectl describe pod` says more"});
  AddInfrastructure(last.reason, fmt::format("Job {}: {}{}", seen.job.name, last.message, *given_up), last.hint,
                    judgement.evidence);
  return judgement;
}

// A cancelled Job goes when its pods have gone, and these go when their node says so.
Judgement OfCancelled(const Observation& seen, const PodSummary& pods, const Options& options) {
  const bool over = StageOf(seen.job, seen.pods, seen.unix_s) == Stage::kOver;
  if (!over || seen.pods.empty() || !seen.job.deleting) {
    return Make(pods.begun > 0 ? Phase::kRunning : Phase::kQueued, pods.started_unix_s);
  }
  Judgement judgement = OfEnd(seen, pods, options);
  judgement.evidence.erase("reason");
  AddEnd("cancelled", "the job was cancelled", "", judgement.evidence);
  return judgement;
}

// Finished Jobs are removed after their TTL, which a policy of the cluster may have made shorter than ours. Results
// that were not collected until then are lost, whoever removed the Job.
Judgement OfRemoved(const Observation& seen, const PodSummary& pods, const Options& options) {
  Judgement judgement = OfEnd(seen, pods, options);
  if (!judgement.evidence.contains("end")) {
    const std::string ttl = seen.job.ttl_s ? fmt::format(" (its ttlSecondsAfterFinished was {})", *seen.job.ttl_s) : "";
    AddInfrastructure("lost", "the Job was removed when it had finished" + ttl,
                      "a policy of the cluster may set that; output: keeps results on a volume", judgement.evidence);
  }
  return judgement;
}

// Judges a Job that existed and is gone.
Judgement OfGone(const Record& record, const Observation& seen, const Options& options) {
  const PodSummary pods = Summarize(seen.pods, seen.unix_s);
  const bool seen_removed = !seen.job.name.empty();
  const bool no_place = !seen.no_namespace.empty();
  if (seen_removed && seen.job.HasEnded() && !record.cancelled && !no_place) return OfRemoved(seen, pods, options);
  Judgement judgement = Make(Phase::kEnded, 0, {{"kubernetes_job", record.key}});
  judgement.awaits_logs = !seen.pods.empty();
  if (pods.first != nullptr) AddPods(seen.pods, *pods.first, judgement.evidence);
  const int64_t ttl_s = std::min(options.ttl_s, record.ttl_s.value_or(options.ttl_s));
  if (record.cancelled) {
    AddEnd("cancelled", "the job was cancelled", "", judgement.evidence);
  } else if (no_place) {
    AddInfrastructure("rights", "the Job is gone, and its namespace accepts no more Jobs: " + seen.no_namespace,
                      "`kubectl get namespace` says whether it is there", judgement.evidence);
  } else if (!seen_removed && seen.unix_s - record.created_unix_s > ttl_s) {
    AddInfrastructure(
        "lost", "the Job is gone, as finished Jobs are after their TTL",
        ttl_s < options.ttl_s ? "a policy of the cluster made it shorter than ttl:" : "ttl: keeps them for longer",
        judgement.evidence);
  } else {
    const Cause cause = OfDeletedJob();
    AddEnd(cause.end, cause.message, cause.hint, judgement.evidence);
  }
  return judgement;
}

Judgement OfThere(const Record& record, const Observation& seen, const Options& options) {
  const PodSummary pods = Summarize(seen.pods, seen.unix_s);
  if (record.cancelled) return OfCancelled(seen, pods, options);
  if (seen.stage == Stage::kOver) return OfEnd(seen, pods, options);
  if (seen.stage == Stage::kRunning) return Make(Phase::kRunning, pods.started_unix_s);
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
      return OfGone(record, seen, options);
    case Observation::Presence::kThere:
      return OfThere(record, seen, options);
  }
  return Make(Phase::kMissing);
}

}  // namespace ridgeline::kubernetes
