// Of Kubernetes' objects what is kept of them: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/failure.h"

namespace ridgeline::kubernetes {

// What is kept of a Job.
struct JobView {
  std::string name, uid, hash;
  int64_t created_unix_s = 0;
  int64_t started_unix_s = 0;  // its controller began with it, or, after it was suspended, again; 0: not yet
  int64_t deadline_s = 0;      // its own activeDeadlineSeconds, from its start on; 0: none
  int64_t pods = 1;            // that run it together
  bool deleting = false;
  bool suspended = false;  // somebody, or a queue, holds it: it has no pods meanwhile
  bool complete = false;
  bool failed = false;
  std::string reason, message;  // of the failure
  int64_t failed_unix_s = 0;
  int64_t completed_unix_s = 0;
  std::optional<int64_t> ttl_s;  // after which it is removed once it has ended; nothing: it stays

  bool HasEnded() const { return complete || failed; }
};

// A pod's phase of our own: the API server has it no more.
inline constexpr const char* kDeletedPhase = "Deleted";

// What is kept of a pod. Of its containers ours alone counts, whatever a cluster puts beside it.
struct PodView {
  std::string name, uid, job, node, phase;
  std::string job_uid;          // of the Job that it belongs to; empty: not said
  std::string index;            // of an Indexed Job
  int64_t deadline_s = 0;       // its activeDeadlineSeconds; 0: none
  bool memory_limited = false;  // our container
  int64_t created_unix_s = 0;
  int64_t deleted_unix_s = 0;                  // it is, or should by then be, gone; 0: nobody deletes it
  int64_t deletion_asked_unix_s = 0;           // when somebody asked for that
  std::string reason, message;                 // of its end
  std::string disruption, disruption_message;  // DisruptionTarget: who takes it away
  std::string unschedulable;                   // why it has no node
  std::string waiting, waiting_message;        // why its container does not start
  std::string init_container;                  // that ours waits for, or that failed; empty: none
  bool node_silent = false;                    // not Ready, though its container runs: nobody has heard of its node
  bool running = false;                        // its container
  bool terminated = false;                     // its container
  int64_t started_unix_s = 0;
  int64_t finished_unix_s = 0;
  int exit_code = 0;
  std::string terminated_reason, last_words, image, image_id;
  std::string resources;  // what our container may have and asks for, whoever changed it: "cpu=8 (asks for 4)"
  std::string qos;        // Guaranteed, Burstable, BestEffort

  bool HasBegun() const { return running || (terminated && started_unix_s > 0); }  // its container: it has a log
};

// Of a Job and a pod as the API server gives them. Throw Json::exception for what is neither.
JobView ParseJob(const plugin::Json& object);
PodView ParsePod(const plugin::Json& object);

// Nothing of ours runs in it any more, as far as can be known: a node that does not answer may run what it likes.
bool HasEnded(const PodView& pod, int64_t now_unix_s);
// By the time a pod that is deleted must be gone, with a margin: its node does not answer.
bool IsOverdue(const PodView& pod, int64_t now_unix_s);

// "2026-01-31T12:00:00Z"; 0 for anything else.
int64_t ParseTime(const std::string& text);

}  // namespace ridgeline::kubernetes
