// The pods of one Job, taken together: pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "kubernetes/parse.h"

namespace ridgeline::kubernetes {

using Pods = std::map<std::string, PodView>;  // by name

struct PodSummary {
  const PodView* first = nullptr;    // that was created
  const PodView* decides = nullptr;  // how the Job ended: the first that ended badly
  bool running = false;              // any of them
  int64_t started_unix_s = 0;        // the first of them; 0: none has
};

// Points into `pods`. `now_unix_s` tells a pod that should be gone by now.
PodSummary Summarize(const Pods& pods, int64_t now_unix_s);

bool HasSucceeded(const PodView& pod);

// What keeps a Job from starting, as far as one look can tell.
enum class Stall {
  kNone,
  kNoPod,
  kContainer,  // which does not start by itself
};
Stall StallOf(const JobView& job, const Pods& pods, int64_t now_unix_s);

}  // namespace ridgeline::kubernetes
