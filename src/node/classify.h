// What became of a point: the trainer's own result where it can be believed, else what the end itself says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "node/oom_kills.h"
#include "node/preflight.h"
#include "node/watch.h"
#include "ridgeline/run.h"
#include "run/job.h"

namespace ridgeline {

struct PointEnd {
  Watched watched;
  int64_t rank = 0;               // that watched.status is of
  OomKills oom;                   // while it ran
  std::optional<RunResult> own;   // what the trainer wrote, where that is a whole RunResult
  bool own_is_read = false;       // of its log, by us: it may have any end
  bool own_is_end_alone = false;  // without figures, as of one of several nodes
  std::string own_problem;        // why there is no `own`
  std::string own_hint;           // what to do about that; empty: to see the log
  std::string storage_problem;  // why the point's folder could not be written, or its result not read; empty: it could
  std::string gone_node;        // another one, that was at the point and has not ended its part; empty: there is none
  std::optional<Unfit> not_begun;  // why it never was started in its container; nothing: it was, or has none
  std::string log_tail;
};

// The trainer's result is believed where it is of this point and says one of the ends a trainer can have; `ok` also
// needs exit code 0. What never began in its container has nothing to say. When we ended the trainer, our reason is the
// end, unless it had finished well at that moment, was told to leave and says how it did, or hung: then its log
// decides, and the evidence says `hung`. What it takes for a crash, and what a trainer without a result leaves as one,
// is first looked through: where the kernel killed a process of it for want of memory, it ran out of that; where its
// folder cannot be written, its ranks never met, or another of its nodes is gone, it is infrastructure's. So is an `ok`
// of a point that refuses throttled measurements whose GPU was throttled (kThrottledShare), whatever trainer says so.
// Where a rank decided, the evidence says which. It always has exit_code or signal, and for every end but ok the log's
// tail.
RunResult Classify(const Job& job, const JobPoint& point, const PointEnd& end);

}  // namespace ridgeline
