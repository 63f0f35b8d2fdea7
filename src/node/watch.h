// Watches all processes of a running trainer to their end: time limit, memory limit, and requests to stop.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/clock.h"
#include "base/process.h"

namespace ridgeline::node {

class ProcessTree;

enum class StopReason {
  kNone,         // it ended by itself
  kMeetLimit,    // it had not begun by then; ended as at the time limit
  kTimeLimit,    // SIGTERM, and SIGKILL after the grace time
  kMemoryLimit,  // SIGKILL at once, because it still grows
  kTold,         // a person wants it to end: SIGINT, and SIGKILL after the grace time
  kPreempted,    // the node is taken away: SIGTERM, and SIGKILL after the time to save
  kSaidEnd,      // its log tells how it ends, and it hangs; ended as at the time limit
  kStepsDone,    // it has done its steps, and hangs; ended as at the time limit
  kElsewhere,    // its point has failed on another node; ended as at the time limit
  kOthersEnded,  // rank 0 ended well long ago, and it hangs; ended as at the time limit
};

struct WatchLimits {
  int64_t meet_ns = 0;       // time until it has begun; 0: it begins when it is started
  int64_t time_ns = 0;       // time after it has begun; 0: none
  int64_t others_ns = 0;     // time for the others after the first process has ended well; 0: none
  int64_t memory_bytes = 0;  // resident, of all processes together; 0: none
  // The processes whose memory counts; nullptr: only the watched ones. If the tree has a mark, the watched processes
  // wait for those with the mark.
  ProcessTree* tree = nullptr;
  int64_t grace_ns = 0;
  int64_t save_ns = 0;
};

struct Watched {
  ExitStatus status;    // status of the deciding process: the first that was killed, else that failed, else the first
  size_t process = 0;   // the deciding process
  bool killed = false;  // it ended by a SIGKILL that we did not send, or reports that one of its processes did
  StopReason stopped = StopReason::kNone;
  bool began = true;                // whether it began before it ended
  int64_t rss_bytes = 0;            // kMemoryLimit: their memory when it exceeded the limit
  int64_t rss_peak_bytes = 0;       // the sum of their peaks
  int64_t rank_rss_peak_bytes = 0;  // the largest of their peaks
};

// Tells whether we were told to stop, and why.
class StopWatcher {
 public:
  virtual ~StopWatcher() = default;
  virtual int fd() const = 0;       // readable after new requests
  virtual StopReason Reason() = 0;  // kNone, kPreempted or kTold, which has precedence
};

// Blocks until the processes, each the leader of its process group, have ended and nothing of their groups is left.
// When one fails, the others have the grace time to end by themselves, because they may be able to report the cause.
// `begun`, if there is a limit for that, tells whether they have begun. It is called every tenth of a second until they
// have. The memory limit is enforced by reading the resident set, more often the closer it is to the limit. This needs
// no cgroup and no address-space limit, which would refuse memory that is reserved but never used. `look`, if given, is
// called about every second while they run. Any answer but kNone ends them. Processes that another program starts for
// us get our signals directly, and not the program that waits for them: srun takes SIGTERM for "kill all", and one
// SIGINT for a question.
Watched Watch(std::span<Child> children, const WatchLimits& limits, StopWatcher& stop, const Clock& clock,
              const std::function<bool()>& begun = {}, const std::function<StopReason()>& look = {});

// The time in which a process with `headroom_bytes` left cannot exceed its limit, at the speed at which memory can be
// written: at least 1 ms and at most 100 ms.
int64_t NextLookNs(int64_t headroom_bytes);

}  // namespace ridgeline::node
