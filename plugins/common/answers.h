// What a launcher answers of its jobs, as launcher.h has it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/plugin_api.h"

namespace ridgeline::plugin {

enum class Phase {
  kQueued,
  kRunning,
  kEnded,
  kMissing,  // the scheduler has never heard of this key, or has forgotten it
};

struct JobState {
  Phase phase = Phase::kMissing;
  int64_t started_unix_s = 0;  // 0: not known
  std::map<std::string, std::string> evidence;
  std::string native_id;  // empty: not known
};

// One answer of poll_many, without its key.
Json ToJson(const JobState& state);

}  // namespace ridgeline::plugin
