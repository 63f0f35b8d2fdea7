#include "kubernetes/parse.h"

#include <time.h>

#include "kubernetes/manifest.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Json;

constexpr int64_t kGoneMarginS = 15;  // after the time a pod should have been gone

std::string Text(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Json At(const Json& object, const char* pointer) { return object.value(Json::json_pointer(pointer), Json()); }

bool Holds(const Json& condition, const char* type) {
  return Text(condition, "type") == type && Text(condition, "status") == "True";
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
  return pod.terminated || pod.started_unix_s == 0 || IsOverdue(pod, now_unix_s);
}

bool IsOverdue(const PodView& pod, int64_t now_unix_s) {
  return pod.deleted_unix_s > 0 && now_unix_s > pod.deleted_unix_s + kGoneMarginS;
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

}  // namespace ridgeline::kubernetes
