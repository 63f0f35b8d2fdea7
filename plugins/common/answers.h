// What a launcher answers (launcher.h of include/ridgeline says what each means), and the documents that makes.
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
  std::string why;  // not
  std::string description;
  int64_t max_jobs = 0;  // of a launcher with a queue
  bool retry = false;    // nothing is wrong but the moment
};
Json ToJson(const Availability& answer);

struct Rendering {
  struct File {
    std::string name, content;
  };
  std::vector<File> files;
  std::string submit;                  // the command; FILE stands for a file, DIR for their folder
  std::string fetch = {};              // the command that brings results into DIR; empty where the jobs themselves do
  std::vector<std::string> asks = {};  // what jobs ask for beside what they were told to, in words; each once
};
Json ToJson(const Rendering& answer);

// Of one job: its native id, or why it has none.
struct Submission {
  std::string native_id;
  std::optional<Failure> error;
};
Json ToJson(const Submission& answer);

enum class Phase {
  kQueued,
  kRunning,
  kEnded,
  kMissing,  // the scheduler has never heard of this key, or has forgotten it
};

// Of one job.
struct JobState {
  Phase phase = Phase::kMissing;
  int64_t started_unix_s = 0;  // 0: not known
  // Of a queued one too: "pending" is the scheduler's own word for why, "expected_unix_s" when it thinks it will start.
  Evidence evidence;
  std::string native_id;  // empty: not known
};
Json ToJson(const JobState& answer);

struct Polled {
  std::vector<JobState> states;
  int64_t again_ms = 0;  // of a launcher that says when to ask again
};

// Of one job.
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
