// Decides how a point ended: by the trainer's own result if that can be accepted, else by the end itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "node/oom_kills.h"
#include "node/preflight.h"
#include "node/watch.h"
#include "ridgeline/run.h"
#include "run/job.h"

namespace ridgeline::node {

struct PointEnd {
  Watched watched;
  int64_t rank = 0;               // the rank of watched.status
  OomKills oom;                   // kills while it ran
  std::optional<RunResult> own;   // the trainer's result, if that is a whole RunResult
  bool own_is_read = false;       // we read it from the log, so it may have any end
  bool own_is_end_alone = false;  // it has no figures, as on one of several nodes
  std::string own_problem;        // why there is no `own`
  std::string own_hint;           // what to do about that; empty: see the log
  std::string storage_problem;  // why the point's folder could not be written, or its result not read; empty: it could
  std::string gone_node;        // another one, that was at the point and has not ended its part; empty: there is none
  std::optional<Unfit> not_begun;  // why it did not start in its container; nothing: it started, or has no container
  std::string log_tail;
};

// The rules:
//
// - The trainer's result is accepted if it belongs to this point and has an end that a trainer can have. `ok` also
//   needs exit code 0. A trainer that never started in its container has no result.
// - If we ended the trainer, our reason is the end, with three exceptions: it had finished well at that moment; it was
//   told to leave and reports how it did; or it hung. If it hung, its log decides, and the evidence says `hung`.
// - If the trainer reports a crash, or leaves no result, other causes are considered first. If the kernel killed one of
//   its processes because memory ran out, the end is out of memory. If its folder cannot be written, its ranks never
//   met, or another of its nodes is gone, the end is infrastructure's.
// - An `ok` is also infrastructure's if the point refuses throttled measurements and its GPU was throttled
//   (kThrottledShare), whichever trainer reports it.
//
// If a rank decided, the evidence names it. The evidence always has exit_code or signal, and for every end but ok the
// log's tail.
RunResult Classify(const Job& job, const JobPoint& point, const PointEnd& end);

}  // namespace ridgeline::node
