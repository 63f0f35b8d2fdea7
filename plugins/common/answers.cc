#include "common/answers.h"

#include <utility>

namespace ridgeline::plugin {
namespace {

const char* NameOf(Phase phase) {
  switch (phase) {
    case Phase::kQueued:
      return "queued";
    case Phase::kRunning:
      return "running";
    case Phase::kEnded:
      return "ended";
    case Phase::kMissing:
      break;
  }
  return "missing";
}

}  // namespace

Json ToJson(const Availability& answer) {
  Json document = {{"available", answer.available}, {"why", answer.why}, {"description", answer.description}};
  if (answer.max_jobs > 0) document["max_jobs"] = answer.max_jobs;
  if (answer.retry) document["retry"] = true;
  return document;
}

Json ToJson(const Rendering& answer) {
  Json files = Json::array();
  for (const Rendering::File& file : answer.files) files.push_back({{"name", file.name}, {"content", file.content}});
  return {{"files", std::move(files)}, {"submit", answer.submit}, {"fetch", answer.fetch}, {"asks", answer.asks}};
}

Json ToJson(const Submission& answer) {
  if (answer.error) return {{"error", answer.error->ToJson()}};
  if (answer.later) return {{"later", true}};
  return {{"native_id", answer.native_id}};
}

Json ToJson(const JobState& answer) {
  Json document = {{"state", NameOf(answer.phase)}};
  if (!answer.evidence.empty()) document["evidence"] = answer.evidence;
  if (answer.started_unix_s > 0) document["started_unix_s"] = answer.started_unix_s;
  if (!answer.native_id.empty()) document["native_id"] = answer.native_id;
  return document;
}

Json ToJson(const Cancellation& answer) { return {{"cancelled", answer.cancelled}}; }

std::vector<std::string> KeysOf(const Json& jobs) {
  std::vector<std::string> keys;
  for (const Json& job : jobs) keys.push_back(job.at("key").get<std::string>());
  return keys;
}

}  // namespace ridgeline::plugin
