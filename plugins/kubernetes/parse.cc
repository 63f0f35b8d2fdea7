#include "kubernetes/parse.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "kubernetes/manifest.h"
#include "kubernetes/quantity.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Json;

constexpr int kInterrupted = 130;     // of `ridgeline exec`: its results say more
constexpr int64_t kGoneMarginS = 15;  // after the time a pod should have been gone: its node does not answer

std::string Text(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Json At(const Json& object, const char* pointer) { return object.value(Json::json_pointer(pointer), Json()); }

bool Holds(const Json& condition, const char* type) {
  return Text(condition, "type") == type && Text(condition, "status") == "True";
}

struct Cause {
  std::string end, message, hint;
};

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
  const bool late = now_unix_s > pod.deleted_unix_s + kGoneMarginS;
  if (pod.deleted_unix_s > 0 && !pod.terminated && (late || pod.node_silent)) {
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
  if (pod.exit_code == 0 || pod.exit_code == kInterrupted) return std::nullopt;
  return Cause{"crashed",
               fmt::format("the pod ended with exit code {}{}", pod.exit_code,
                           pod.exit_code > 128 ? fmt::format(" (signal {})", pod.exit_code - 128) : ""),
               "the end of its log is with the result"};
}

// Where one pod of several fails, the others are deleted.
bool DecidesBefore(const PodView& pod, const PodView& other) {
  const bool own_end = pod.deleted_unix_s == 0 && pod.phase == "Failed";
  const bool others_own_end = other.deleted_unix_s == 0 && other.phase == "Failed";
  return own_end != others_own_end ? own_end : pod.created_unix_s < other.created_unix_s;
}

bool IsGood(const PodView& pod) { return pod.phase == "Succeeded" && pod.exit_code == 0; }

void AddEvidence(const PodView& pod, std::map<std::string, std::string>& evidence) {
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
  if (pod.terminated) evidence["exit_code"] = std::to_string(pod.exit_code);
  if (pod.created_unix_s > 0 && pod.started_unix_s > 0) {
    evidence["queue_wait_s"] = std::to_string(std::max<int64_t>(pod.started_unix_s - pod.created_unix_s, 0));
  }
}

// What a pod that does not start waits for.
void JudgeWaiting(const JobView& job, const PodView& pod, Verdict& verdict) {
  static constexpr std::array<std::string_view, 2> kHopeless = {"InvalidImageName", "ErrImageNeverPull"};
  const auto waits = [&](const std::string& message, const std::string& hint) {
    verdict.evidence["waits"] = fmt::format("Job {}: {}", job.name, message);
    verdict.evidence["hint"] = hint;
  };
  if (!pod.unschedulable.empty()) {
    waits(pod.unschedulable, "it starts when a node has room; where no node is that large, ask for less");
  }
  if (pod.waiting.empty() || pod.waiting == "ContainerCreating" || pod.waiting == "PodInitializing") return;
  const std::string said = pod.waiting + (pod.waiting_message.empty() ? "" : ": " + pod.waiting_message);
  const bool image = pod.waiting.find("Image") != std::string::npos;
  waits((image ? "the image cannot be pulled: " : "its container cannot be made: ") + said,
        image ? "check image:, and image_pull_secrets: where the registry asks who you are"
              : "`kubectl describe pod " + pod.name + "` says more");
  verdict.stuck = pod.waiting;
  verdict.at_once = std::find(kHopeless.begin(), kHopeless.end(), pod.waiting) != kHopeless.end();
}

}  // namespace

int64_t ParseTime(const std::string& text) {
  tm parts{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  return end == nullptr || (*end != 'Z' && *end != '.') ? 0 : ::timegm(&parts);
}

bool HasEnded(const PodView& pod, int64_t now_unix_s) {
  if (pod.phase == "Succeeded" || pod.phase == "Failed" || pod.phase == kDeletedPhase) return true;
  if (pod.deleted_unix_s == 0) return false;
  return pod.terminated || pod.started_unix_s == 0 || now_unix_s > pod.deleted_unix_s + kGoneMarginS;
}

JobView ParseJob(const Json& object) {
  const Json& metadata = object.at("metadata");
  JobView job;
  job.name = metadata.at("name").get<std::string>();
  job.uid = Text(metadata, "uid");
  job.hash = Text(metadata.value("annotations", Json::object()), kHashAnnotation);
  job.created_unix_s = ParseTime(Text(metadata, "creationTimestamp"));
  job.deleting = metadata.contains("deletionTimestamp");
  for (const Json& condition : At(object, "/status/conditions")) {
    job.complete = job.complete || Holds(condition, "Complete");
    // FailureTarget: it has failed, and its pods are still being ended.
    if (!Holds(condition, "Failed") && !Holds(condition, "FailureTarget")) continue;
    job.failed = true;
    job.reason = Text(condition, "reason");
    job.message = Text(condition, "message");
  }
  return job;
}

PodView ParsePod(const Json& object) {
  const Json& metadata = object.at("metadata");
  const Json status = object.value("status", Json::object());
  PodView pod;
  pod.name = metadata.at("name").get<std::string>();
  pod.uid = Text(metadata, "uid");
  pod.job = Text(metadata.value("labels", Json::object()), "ridgeline.dev/job");
  pod.index = Text(metadata.value("annotations", Json::object()), kIndexAnnotation);
  pod.created_unix_s = ParseTime(Text(metadata, "creationTimestamp"));
  pod.deleted_unix_s = ParseTime(Text(metadata, "deletionTimestamp"));
  pod.node = Text(object.value("spec", Json::object()), "nodeName");
  pod.phase = Text(status, "phase");
  pod.reason = Text(status, "reason");
  pod.message = Text(status, "message");
  bool not_ready = false;
  for (const Json& condition : status.value("conditions", Json::array())) {
    not_ready = not_ready || (Text(condition, "type") == "Ready" && Text(condition, "status") == "False");
    if (Holds(condition, "DisruptionTarget")) {
      pod.disruption = Text(condition, "reason");
      pod.disruption_message = Text(condition, "message");
    }
    if (Text(condition, "type") == "PodScheduled" && Text(condition, "status") == "False") {
      pod.unschedulable = Text(condition, "message");
    }
  }
  for (const Json& container : status.value("containerStatuses", Json::array())) {
    if (Text(container, "name") != kContainer) continue;
    pod.image_id = Text(container, "imageID");
    const Json state = container.value("state", Json::object());
    const Json waiting = state.value("waiting", Json::object());
    pod.waiting = Text(waiting, "reason");
    pod.waiting_message = Text(waiting, "message");
    pod.running = state.contains("running");
    pod.node_silent = not_ready && pod.running && container.value("ready", false);
    const Json terminated = state.value("terminated", Json::object());
    pod.terminated = !terminated.empty();
    pod.started_unix_s = ParseTime(Text(pod.running ? state.at("running") : terminated, "startedAt"));
    pod.exit_code = terminated.value("exitCode", 0);
    pod.terminated_reason = Text(terminated, "reason");
    pod.last_words = Text(terminated, "message");
  }
  return pod;
}

Verdict JudgeJob(const JobView& job, const std::map<std::string, PodView>& pods, int64_t now_unix_s) {
  Verdict verdict;
  const PodView* decides = nullptr;  // the first that ended badly
  const PodView* first = nullptr;
  bool running = false;
  for (const auto& [name, pod] : pods) {
    if (first == nullptr || pod.created_unix_s < first->created_unix_s) first = &pod;
    running = running || pod.running;
    if (pod.started_unix_s > 0 && (verdict.started_unix_s == 0 || pod.started_unix_s < verdict.started_unix_s)) {
      verdict.started_unix_s = pod.started_unix_s;
    }
    if (!HasEnded(pod, now_unix_s) || IsGood(pod)) continue;
    if (decides == nullptr || DecidesBefore(pod, *decides)) decides = &pod;
  }
  if (!job.complete && !job.failed && decides == nullptr) {
    verdict.phase = running ? Phase::kRunning : Phase::kQueued;
    if (!running && first != nullptr) JudgeWaiting(job, *first, verdict);
    return verdict;
  }
  verdict.phase = Phase::kEnded;
  verdict.evidence["kubernetes_job"] = job.name;
  if (!job.reason.empty()) verdict.evidence["job_reason"] = job.reason;
  if (decides == nullptr) decides = first;
  if (decides != nullptr) AddEvidence(*decides, verdict.evidence);
  const bool taken_away = decides != nullptr && !IsGood(*decides) && decides->terminated_reason != "OOMKilled";
  std::optional<Cause> cause = taken_away ? OfDisruption(*decides, now_unix_s) : std::nullopt;
  // The controller deletes the pods of a Job that is past its deadline.
  if (!cause) cause = OfDeadline(job, verdict.started_unix_s > 0);
  if (!cause && taken_away) cause = OfDeletion(*decides);
  if (!cause && decides != nullptr) cause = OfContainer(*decides);
  if (!cause && job.failed && (decides == nullptr || decides->exit_code != kInterrupted)) {
    cause = Cause{"crashed", fmt::format("the Job failed ({}): {}", job.reason, job.message), ""};
  }
  if (cause) {
    verdict.evidence["end"] = cause->end;
    verdict.evidence["message"] = cause->message;
    if (!cause->hint.empty()) verdict.evidence["hint"] = cause->hint;
  }
  return verdict;
}

Refusal JudgeRefusal(const std::string& event_message) {
  Refusal refusal;
  refusal.message = "no pod can be made: " + event_message;
  const auto says = [&](const char* words) { return event_message.find(words) != std::string::npos; };
  if (says("exceeded quota") && IsBeyondQuota(event_message)) {
    refusal.hint = "it asks for more than the namespace's quota has in all: ask for less, or have the quota raised";
    refusal.for_good = true;
  } else if (says("exceeded quota")) {
    refusal.hint = "it starts when others free what the quota counts; or have the quota raised";
  } else if (says("must specify")) {
    refusal.hint = "the namespace's quota wants cpu: and memory: set";
    refusal.for_good = true;
  } else if (says("service account") || says("serviceaccount")) {
    refusal.hint = "service_account: names one that the namespace has: `kubectl get serviceaccount`";
    refusal.for_good = true;
  } else if (says("PriorityClass")) {
    refusal.hint = "priority_class: names one that the cluster has: `kubectl get priorityclass`";
    refusal.for_good = true;
  } else {
    refusal.hint = "the cluster's rules forbid such a pod; patch: changes what it asks for";
    refusal.for_good = says("is forbidden");
  }
  return refusal;
}

bool IsBeyondQuota(const std::string& message) {
  // "NAME: a=1,b=2, NAME: …"
  const auto amounts = [&](const std::string& name) {
    std::map<std::string, double> found;
    size_t at = message.find(name);
    if (at == std::string::npos) return found;
    at += name.size();
    while (at < message.size()) {
      const size_t equals = message.find('=', at);
      const size_t end = std::min(message.find(',', at), message.size());
      if (equals == std::string::npos || equals > end) break;
      if (const auto amount = ParseQuantity(std::string_view(message).substr(equals + 1, end - equals - 1))) {
        found[message.substr(at, equals - at)] = *amount;
      }
      if (end + 1 >= message.size() || message[end + 1] == ' ') break;
      at = end + 1;
    }
    return found;
  };
  const std::map<std::string, double> limited = amounts("limited: ");
  const std::map<std::string, double> requested = amounts("requested: ");
  return std::any_of(requested.begin(), requested.end(), [&](const auto& entry) {
    const auto limit = limited.find(entry.first);
    return limit != limited.end() && entry.second > limit->second;
  });
}

}  // namespace ridgeline::kubernetes
