// A launcher's answers (include/ridgeline/launcher.h says what each means), and the documents made from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/evidence.h"
#include "common/failure.h"

namespace ridgeline::plugin {

struct Availability {
  bool available = false;
  std::string why;  // why it is not available
  std::string description;
  int64_t max_jobs = 0;  // for a launcher with a queue
  bool retry = false;    // it is unavailable only for the moment
};
Json ToJson(const Availability& answer);

struct Rendering {
  struct File {
    std::string name, content;
  };
  std::vector<File> files;
  std::string submit;                  // the command; FILE stands for a file, DIR for their folder
  std::string fetch = {};              // the command that brings results into DIR; empty if the jobs themselves do
  std::vector<std::string> asks = {};  // what jobs ask for besides what they were told to, in words; each once
};
Json ToJson(const Rendering& answer);

// The answer for one job: its native id, or why it has none.
struct Submission {
  std::string native_id;
  std::optional<Failure> error = {};
  bool later = false;  // not begun within the call's time
};
Json ToJson(const Submission& answer);

enum class Phase {
  kQueued,
  kRunning,
  kEnded,
  kMissing,  // the scheduler has never heard of this key, or has forgotten it
};

// The answer for one job.
struct JobState {
  Phase phase = Phase::kMissing;
  int64_t started_unix_s = 0;  // 0: not known
  // For a queued job also: "pending" is the scheduler's own word for why it waits, "expected_unix_s" when the scheduler
  // expects to start it.
  Evidence evidence;
  std::string native_id;  // empty: not known
};
Json ToJson(const JobState& answer);

struct Polled {
  std::vector<JobState> states;
  int64_t again_ms = 0;  // for a launcher that says when to ask again
};

// The answer for one job.
struct Cancellation {
  bool cancelled = false;
};
Json ToJson(const Cancellation& answer);

// The keys of a request's jobs, in order.
std::vector<std::string> KeysOf(const Json& jobs);

// A reply's `jobs`. REQUIRES: an answer for each key.
template <typename Answer>
Json ToJson(const std::vector<std::string>& keys, const std::vector<Answer>& answers) {
  Json list = Json::array();
  for (size_t i = 0; i < keys.size(); ++i) {
    list.push_back(ToJson(answers.at(i)));
    list.back()["key"] = keys[i];
  }
  return list;
}

}  // namespace ridgeline::plugin
