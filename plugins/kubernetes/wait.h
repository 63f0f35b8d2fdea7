// Why a Job has not started, in words for people, and whether it ever will: pure.
#pragma once

#include <optional>
#include <string>

#include "kubernetes/parse.h"

namespace ridgeline::kubernetes {

struct Wait {
  std::string reason;  // of the end where it waits for too long (run.h)
  std::string message;
  std::string hint;
  bool hopeless = false;  // it does not start by itself
  bool no_node = false;   // there is no node now that it may go to, busy or not
};

// What a wait is for, the same for all Jobs that wait for it: not the pods' names, nor how many nodes lack what, nor
// which of two words the kubelet has for it at the moment.
std::string SubjectOf(const Wait& wait, const std::string& image);

// What an event says of a pod whose container is being made.
struct PodEvent {
  std::string reason, message;
};

// What a pod waits for; nothing where it need not be said: it starts, and `event`, the last of it, says no other.
std::optional<Wait> WaitOf(const PodView& pod, const PodEvent& event);

// "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity.": whether none of them may
// be gone to, so that it is no matter of room.
bool IsWithoutNode(const std::string& message);

// Why a Job gets no pod, as an event of it says.
Wait WaitOfRefusal(const std::string& event_message);

// "exceeded quota: q, requested: pods=2, used: pods=1, limited: pods=1": more is requested than the quota has in all.
bool IsBeyondQuota(const std::string& message);

}  // namespace ridgeline::kubernetes
