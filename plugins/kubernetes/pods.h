// The pods of one Job, summarized. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kubernetes/parse.h"

namespace ridgeline::kubernetes {

// By KeyOf. Some controllers give a pod that replaces another the other's name.
using Pods = std::map<std::string, PodView>;

// Returns what distinguishes a pod from all others of its namespace, and sorts as the names do.
std::string KeyOf(const PodView& pod);

// Among pods that replaced one another, one counts for each index: the one that succeeded, else the newest.
struct PodSummary {
  const PodView* first = nullptr;  // the first that was created
  // Shows how the Job ended, once it has: the first pod that ended badly or is taken away.
  const PodView* decides = nullptr;
  bool any_failed = false;  // whether a pod has ended badly already
  int64_t begun = 0;        // pods whose container runs or has run
  int64_t succeeded = 0;
  int64_t started_unix_s = 0;   // start of the last pod that has begun; 0: none has
  int64_t finished_unix_s = 0;  // end of the last pod that has ended; 0: none reported one
};

// The result points into `pods`. `now_unix_s` shows which pods should be gone by now.
PodSummary Summarize(const Pods& pods, int64_t now_unix_s);

bool HasSucceeded(const PodView& pod);

// Returns the pods that count, in the order of their indices.
std::vector<const PodView*> InOrder(const Pods& pods);

// The stage of a Job that has not ended.
enum class Stage {
  kNoPod,     // no pod can be made so far
  kQueued,    // no pod has a node
  kStarting,  // a pod has its node, and not all pods run; until then that node is held for nothing
  kRunning,
  kSuspended,
  kOver,  // its end will be reported soon
};
Stage StageOf(const JobView& job, const Pods& pods, int64_t now_unix_s);

}  // namespace ridgeline::kubernetes
