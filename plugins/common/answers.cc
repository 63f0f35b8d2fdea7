#include "common/answers.h"

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

Json ToJson(const JobState& state) {
  Json answer = {{"state", NameOf(state.phase)}};
  if (!state.evidence.empty()) answer["evidence"] = state.evidence;
  if (state.started_unix_s > 0) answer["started_unix_s"] = state.started_unix_s;
  if (!state.native_id.empty()) answer["native_id"] = state.native_id;
  return answer;
}

}  // namespace ridgeline::plugin
