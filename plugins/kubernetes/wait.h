// Why a Job has not started, in words for people, and whether it ever will. Pure.
#pragma once

#include <optional>
#include <string>

#include "kubernetes/parse.h"

namespace ridgeline::kubernetes {

struct Wait {
  std::string reason;  // reason of the end if it waits for too long (run.h)
  std::string message;
  std::string hint;
  bool hopeless = false;  // it does not start by itself
  bool no_node = false;   // no node exists now that it may go to, busy or not
};

// Returns what the wait is for, in the same words for all Jobs that wait for it. Leaves out the pods' names, how many
// nodes lack something, and which of two words the kubelet uses at the moment.
std::string SubjectOf(const Wait& wait, const std::string& image);

// An event about a pod whose container is being made.
struct PodEvent {
  std::string reason, message;
};

// Returns what a pod waits for. Returns nothing if it is starting, and `event`, its last event, does not say otherwise.
std::optional<Wait> WaitOf(const PodView& pod, const PodEvent& event);

// Returns whether a pod may go to none of these nodes, so that room is not the problem: "0/3 nodes are available: 1
// Insufficient cpu, 2 node(s) didn't match Pod's node affinity." has one that it may go to.
bool IsWithoutNode(const std::string& message);

// Returns why a Job gets no pod, according to an event.
Wait WaitOfRefusal(const std::string& event_message);

// Returns whether more is requested than the quota has in all: "exceeded quota: q, requested: pods=2, used: pods=1,
// limited: pods=1".
bool IsBeyondQuota(const std::string& message);

}  // namespace ridgeline::kubernetes
