// What Kubernetes' objects say of a job: pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/plugin_api.h"

namespace ridgeline::kubernetes {

// What is kept of a Job.
struct JobView {
  std::string name, uid, hash;
  int64_t created_unix_s = 0;
  bool deleting = false;
  bool complete = false;
  bool failed = false;
  std::string reason, message;  // of the failure
};

// A phase of our own: the API server has it no more.
inline constexpr const char* kDeletedPhase = "Deleted";

// What is kept of a pod.
struct PodView {
  std::string name, uid, job, node, phase;
  std::string index;  // of an Indexed Job
  int64_t created_unix_s = 0;
  int64_t deleted_unix_s = 0;                  // it is, or should by then be, gone; 0: nobody deletes it
  std::string reason, message;                 // of its end
  std::string disruption, disruption_message;  // DisruptionTarget: who takes it away
  std::string unschedulable;                   // why it has no node
  std::string waiting, waiting_message;        // why its container does not start
  bool node_silent = false;                    // not Ready, though its container runs: nobody has heard of its node
  bool running = false;                        // its container
  bool terminated = false;                     // its container
  int64_t started_unix_s = 0;
  int exit_code = 0;
  std::string terminated_reason, last_words, image_id;

  bool HasLog() const { return running || (terminated && started_unix_s > 0); }
};

// Of a Job and a pod as the API server gives them. Throw Json::exception for what is neither.
JobView ParseJob(const plugin::Json& object);
PodView ParsePod(const plugin::Json& object);

// Nothing of it runs any more, as far as can be known: a node that does not answer may run what it likes.
bool HasEnded(const PodView& pod, int64_t now_unix_s);

enum class Phase { kQueued, kRunning, kEnded };

// What a Job and its pods come to.
struct Verdict {
  Phase phase = Phase::kQueued;
  int64_t started_unix_s = 0;
  // kEnded: as launcher.h has evidence; "end" is missing where the results say enough. kQueued: "waits" and "hint".
  std::map<std::string, std::string> evidence;
  std::string stuck;     // kQueued, and it will not start by itself: since this; ended as `invalid` after a while
  bool at_once = false;  // or now
};

// `now_unix_s` tells a pod that should be gone by now. `pods`: by name, those there are, or were, of the Job.
Verdict JudgeJob(const JobView& job, const std::map<std::string, PodView>& pods, int64_t now_unix_s);

// Why a Job gets no pod, as an event of it says.
struct Refusal {
  std::string message;
  std::string hint;
  bool for_good = false;  // no waiting helps
};
Refusal JudgeRefusal(const std::string& event_message);

// "exceeded quota: q, requested: pods=2, used: pods=1, limited: pods=1": more is requested than the quota has in all.
bool IsBeyondQuota(const std::string& message);

// "2026-01-31T12:00:00Z"; 0 for anything else.
int64_t ParseTime(const std::string& text);

}  // namespace ridgeline::kubernetes
