// The parts of Kubernetes' objects that are kept. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/failure.h"
#include "kubernetes/kinds.h"

namespace ridgeline::kubernetes {

inline constexpr const char* kDeadlineExceeded = "DeadlineExceeded";

// The parts of a Job, or of another kind of object that a job became, that are kept.
struct JobView {
  std::string name, uid, hash;
  int64_t created_unix_s = 0;
  int64_t started_unix_s = 0;  // when its controller started it, last after a suspension; 0: it waits suspended
  int64_t deadline_s = 0;      // its own activeDeadlineSeconds, counted from its start; 0: none
  int64_t pods = 1;            // pods that run it together
  bool deleting = false;
  bool suspended = false;  // a person or a queue holds it; it has no pods meanwhile
  bool complete = false;
  bool failed = false;
  std::string reason, message;  // about the failure
  int64_t failed_unix_s = 0;
  int64_t completed_unix_s = 0;
  std::optional<int64_t> ttl_s;  // how long it is kept after its end; nothing: it stays

  bool HasEnded() const { return complete || failed; }
};

// Our own phase for a pod that the API server no longer has.
inline constexpr const char* kDeletedPhase = "Deleted";

// The parts of a pod that are kept. Only our own container counts, whatever a cluster adds to the pod.
struct PodView {
  std::string name, uid, job, node, phase;
  std::string job_uid;          // uid of the job's object that it belongs to; empty: not given
  std::string index;            // which of a gang's pods it is
  int64_t deadline_s = 0;       // its activeDeadlineSeconds; 0: none
  bool memory_limited = false;  // whether our container has a memory limit
  int64_t created_unix_s = 0;
  int64_t deleted_unix_s = 0;                  // when it is gone or should be; 0: nobody deletes it
  int64_t deletion_asked_unix_s = 0;           // when its deletion was requested
  std::string reason, message;                 // about its end
  std::string disruption, disruption_message;  // DisruptionTarget: what takes it away
  std::string unschedulable;                   // why it has no node
  std::string waiting, waiting_message;        // why its container does not start
  std::string init_container;                  // the init container that ours waits for, or that failed; empty: none
  bool node_silent = false;                    // not Ready although its container runs: its node does not report
  bool running = false;                        // its container runs
  bool terminated = false;                     // its container has terminated
  int64_t started_unix_s = 0;
  int64_t finished_unix_s = 0;
  int exit_code = 0;
  std::string terminated_reason, last_words, image, image_id;
  std::string resources;  // what our container may have and asks for, whoever changed it: "cpu=8 (asks for 4)"
  std::string qos;        // Guaranteed, Burstable, BestEffort

  // Whether its container has begun, so that it has a log.
  bool HasBegun() const { return running || (terminated && started_unix_s > 0); }
};

// Parse a job's object and a pod from the API server. Throw Json::exception for other objects.
JobView ParseJob(const plugin::Json& object, const Kind& kind);
PodView ParsePod(const plugin::Json& object, const Kind& kind);

// Returns why a gang scheduler does not start a gang, according to its PodGroup: a condition of the type
// Unschedulable…, else the phase. Empty if it says nothing against it.
std::string WaitOfGroup(const plugin::Json& object);

// Returns whether none of our containers runs in it any more, as far as can be known: a node that does not answer may
// still run it.
bool HasEnded(const PodView& pod, int64_t now_unix_s);
// Returns whether a deleted pod should be gone by now, with a margin. If it is not, its node does not answer.
bool IsOverdue(const PodView& pod, int64_t now_unix_s);

// Parses "2026-01-31T12:00:00Z"; 0 for any other text.
int64_t ParseTime(const std::string& text);

}  // namespace ridgeline::kubernetes
