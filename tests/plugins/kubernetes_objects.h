// Jobs and pods as a test's API server has them.
#pragma once

#include <string>

#include "common/failure.h"

namespace ridgeline::kubernetes {

using plugin::Json;

inline Json JobObject(const Json& status = Json::object()) {
  return {{"metadata", {{"name", "rl-1"}, {"uid", "u"}, {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
          {"status", status}};
}
inline Json FailedJob(const std::string& reason = "BackoffLimitExceeded") {
  return JobObject({{"conditions", {{{"type", "Failed"}, {"status", "True"}, {"reason", reason}, {"message", "m"}}}}});
}
inline Json PodObject(const std::string& phase, const Json& container_state, Json status = Json::object(),
                      const Json& metadata = Json::object()) {
  Json pod = {{"metadata", {{"name", "rl-1-x"}, {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
              {"spec", {{"nodeName", "n1"}}}};
  pod["metadata"].update(metadata);
  status["phase"] = phase;
  if (!container_state.is_null()) {
    status["containerStatuses"] =
        Json::array({{{"name", "ridgeline"}, {"imageID", "i@sha256:1"}, {"state", container_state}}});
  }
  pod["status"] = status;
  return pod;
}
inline Json Terminated(int code, const std::string& reason = "Error", const std::string& message = "") {
  return {{"terminated",
           {{"exitCode", code}, {"reason", reason}, {"message", message}, {"startedAt", "2026-01-01T00:00:05Z"}}}};
}
inline Json Running() { return {{"running", {{"startedAt", "2026-01-01T00:00:05Z"}}}}; }
inline Json Disrupted(const std::string& reason, const std::string& message = "") {
  return {
      {"conditions", {{{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", reason}, {"message", message}}}}};
}

}  // namespace ridgeline::kubernetes
