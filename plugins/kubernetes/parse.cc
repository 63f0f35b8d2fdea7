#include "kubernetes/parse.h"

#include <time.h>

#include <set>

#include "kubernetes/manifest.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Json;

constexpr int64_t kGoneMarginS = 15;  // time after which a deleted pod should be gone

std::string Text(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Json At(const Json& object, const char* pointer) { return object.value(Json::json_pointer(pointer), Json()); }

int64_t Number(const Json& object, const char* pointer, int64_t otherwise) {
  const Json found = At(object, pointer);
  return found.is_number_integer() ? found.get<int64_t>() : otherwise;
}

bool Holds(const Json& condition, const char* type) {
  return Text(condition, "type") == type && Text(condition, "status") == "True";
}

// Returns "cpu=8 (asks for 4), memory=64Gi": the limits, and the requests if they differ.
std::string ResourcesOf(const Json& resources) {
  const Json limits = resources.value("limits", Json::object());
  const Json requests = resources.value("requests", Json::object());
  std::set<std::string> names;
  for (const Json* amounts : {&limits, &requests}) {
    for (const auto& item : amounts->items()) names.insert(item.key());
  }
  std::string all;
  for (const std::string& name : names) {
    const std::string limit = Text(limits, name.c_str());
    const std::string request = Text(requests, name.c_str());
    all += (all.empty() ? "" : ", ") + name + '=' + (limit.empty() ? "no limit" : limit);
    if (request != limit) all += request.empty() ? " (asks for none)" : " (asks for " + request + ')';
  }
  return all;
}

// Takes the status of one of the pod's initContainers, which ends before our container begins, or runs beside it.
void TakeInitContainer(const Json& status, PodView& pod) {
  const Json state = status.value("state", Json::object());
  const Json waiting = state.value("waiting", Json::object());
  const bool failed = Number(state, "/terminated/exitCode", 0) != 0;
  const bool stuck = !waiting.empty() && Text(waiting, "reason") != "PodInitializing";
  if (!pod.init_container.empty() || (!failed && !stuck && !state.contains("running"))) return;
  pod.init_container = Text(status, "name");
  if (stuck) {
    pod.waiting = Text(waiting, "reason");
    pod.waiting_message = Text(waiting, "message");
  }
}

}  // namespace

std::string WaitOfGroup(const Json& object) {
  const Json status = object.value("status", Json::object());
  std::string said;
  // Volcano's, and KAI's.
  for (const char* list : {"conditions", "schedulingConditions"}) {
    for (const Json& condition : status.value(list, Json::array())) {
      const bool holds = Text(condition, "status").empty() || Text(condition, "status") == "True";
      if (!holds || !Text(condition, "type").starts_with("Unschedulable")) continue;
      said = Text(condition, "reason");
      if (const std::string message = Text(condition, "message"); !message.empty()) {
        said += (said.empty() ? "" : ": ") + message;
      }
    }
  }
  const std::string phase = Text(status, "phase");
  const bool waits = phase == "Pending" || phase == "PreScheduling" || phase == "Scheduling" || phase == "Inqueue";
  if (waits) return said.empty() ? "its phase is " + phase : said;
  // Volcano's condition stays when the gang runs. "Unknown": a part of it does.
  return phase.empty() || phase == "Unknown" ? said : "";
}

int64_t ParseTime(const std::string& text) {
  tm parts{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  return end == nullptr || (*end != 'Z' && *end != '.') ? 0 : ::timegm(&parts);
}

bool HasEnded(const PodView& pod, int64_t now_unix_s) {
  if (pod.terminated || pod.phase == "Succeeded" || pod.phase == "Failed" || pod.phase == kDeletedPhase) return true;
  if (pod.deleted_unix_s == 0) return false;
  return pod.started_unix_s == 0 || IsOverdue(pod, now_unix_s);
}

bool IsOverdue(const PodView& pod, int64_t now_unix_s) {
  return pod.deleted_unix_s > 0 && now_unix_s > pod.deleted_unix_s + kGoneMarginS;
}

JobView ParseJob(const Json& object, const Kind& kind) {
  const Json& metadata = object.at("metadata");
  JobView job;
  job.name = metadata.at("name").get<std::string>();
  job.uid = Text(metadata, "uid");
  job.hash = Text(metadata.value("annotations", Json::object()), kHashAnnotation);
  job.created_unix_s = ParseTime(Text(metadata, "creationTimestamp"));
  job.deleting = metadata.contains("deletionTimestamp");
  job.started_unix_s = ParseTime(Text(object.value("status", Json::object()), "startTime"));
  job.deadline_s = Number(object, kind.deadline, 0);
  job.pods = Number(object, kind.pods, 1);
  job.suspended = At(object, kind.suspend) == true;
  if (const int64_t ttl_s = kind.ttl == nullptr ? -1 : Number(object, kind.ttl, -1); ttl_s >= 0) job.ttl_s = ttl_s;
  job.completed_unix_s = ParseTime(Text(object.value("status", Json::object()), "completionTime"));
  bool was_suspended = job.suspended;
  for (const Json& condition : At(object, "/status/conditions")) {
    was_suspended = was_suspended || Text(condition, "type") == "Suspended";
    job.complete = job.complete || Holds(condition, kind.complete);
    const int64_t changed_unix_s = ParseTime(Text(condition, "lastTransitionTime"));
    // Some kinds have no times of their own.
    if (Holds(condition, kind.complete) && job.completed_unix_s == 0) job.completed_unix_s = changed_unix_s;
    if (job.started_unix_s == 0 && Text(condition, "type") == "Suspended" && Text(condition, "status") == "False") {
      job.started_unix_s = changed_unix_s;
    }
    // FailureTarget: it has failed, and its pods are still being ended.
    if (!Holds(condition, "Failed") && !Holds(condition, "FailureTarget")) continue;
    job.failed = true;
    job.reason = Text(condition, "reason");
    if (kind.deadline_reason != nullptr && job.reason == kind.deadline_reason) job.reason = kDeadlineExceeded;
    job.message = Text(condition, "message");
    job.failed_unix_s = changed_unix_s;
  }
  // A JobSet that was never suspended does not say when it started. Its controller starts it as soon as it exists.
  if (job.started_unix_s == 0 && !was_suspended) job.started_unix_s = job.created_unix_s;
  return job;
}

PodView ParsePod(const Json& object, const Kind& kind) {
  const Json& metadata = object.at("metadata");
  const Json status = object.value("status", Json::object());
  PodView pod;
  pod.name = metadata.at("name").get<std::string>();
  pod.uid = Text(metadata, "uid");
  pod.job = Text(metadata.value("labels", Json::object()), "ridgeline.dev/job");
  for (const Json& owner : metadata.value("ownerReferences", Json::array())) {
    if (Text(owner, "kind") == kind.name) pod.job_uid = Text(owner, "uid");
  }
  pod.index = Text(metadata.value(kind.index_is_label ? "labels" : "annotations", Json::object()), kind.index);
  pod.created_unix_s = ParseTime(Text(metadata, "creationTimestamp"));
  pod.deleted_unix_s = ParseTime(Text(metadata, "deletionTimestamp"));
  if (pod.deleted_unix_s > 0) {
    pod.deletion_asked_unix_s = pod.deleted_unix_s - Number(metadata, "/deletionGracePeriodSeconds", 0);
  }
  const Json spec = object.value("spec", Json::object());
  pod.node = Text(spec, "nodeName");
  pod.deadline_s = Number(spec, "/activeDeadlineSeconds", 0);
  for (const Json& container : spec.value("containers", Json::array())) {
    if (Text(container, "name") == kind.container) {
      pod.memory_limited = container.contains("/resources/limits/memory"_json_pointer);
      pod.image = Text(container, "image");
      pod.resources = ResourcesOf(container.value("resources", Json::object()));
    }
  }
  pod.phase = Text(status, "phase");
  pod.qos = Text(status, "qosClass");
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
    if (Text(container, "name") != kind.container) continue;
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
    pod.finished_unix_s = ParseTime(Text(terminated, "finishedAt"));
    pod.terminated_reason = Text(terminated, "reason");
    pod.last_words = Text(terminated, "message");
  }
  if (!pod.HasBegun()) {
    for (const Json& container : status.value("initContainerStatuses", Json::array()))
      TakeInitContainer(container, pod);
  }
  return pod;
}

}  // namespace ridgeline::kubernetes
