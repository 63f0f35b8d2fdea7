// The pods of one Job, taken together: pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kubernetes/parse.h"

namespace ridgeline::kubernetes {

using Pods = std::map<std::string, PodView>;  // by name

// Of pods that replaced one another, of each index one counts: the one that succeeded, else the newest.
struct PodSummary {
  const PodView* first = nullptr;    // that was created
  const PodView* decides = nullptr;  // how the Job ended, once it has: the first that ended badly, or is taken away
  bool any_failed = false;           // whether one has ended badly already
  int64_t begun = 0;                 // how many have, or had, their container running
  int64_t succeeded = 0;
  int64_t started_unix_s = 0;   // the last of those that have begun; 0: none has
  int64_t finished_unix_s = 0;  // the last of those that have ended; 0: none has said so
};

// Points into `pods`. `now_unix_s` tells a pod that should be gone by now.
PodSummary Summarize(const Pods& pods, int64_t now_unix_s);

bool HasSucceeded(const PodView& pod);

// In the order of their indices.
std::vector<const PodView*> InOrder(const Pods& pods);

// How far a Job is that has not ended.
enum class Stage {
  kNoPod,     // none can be made, so far
  kQueued,    // no pod has a node
  kStarting,  // a pod has its node, and not all run: until then that node is held for nothing
  kRunning,
  kSuspended,
  kOver,  // its end is on its way
};
Stage StageOf(const JobView& job, const Pods& pods, int64_t now_unix_s);

}  // namespace ridgeline::kubernetes
