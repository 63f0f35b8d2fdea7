// A running trainer, all of its processes, watched to its end: its time limit, its memory limit, and being told to
// stop.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/clock.h"
#include "base/process.h"

namespace ridgeline {

class ProcessTree;

enum class StopReason {
  kNone,         // it ended by itself
  kMeetLimit,    // it had not begun by then: as the time limit
  kTimeLimit,    // SIGTERM, and SIGKILL after the grace time
  kMemoryLimit,  // SIGKILL at once: it is still growing
  kTold,         // a person wants it to end: SIGINT, and SIGKILL after the grace time
  kPreempted,    // the node is taken away: SIGTERM, and SIGKILL after the time to save
  kSaidEnd,      // its log tells how it ends, and it hangs: as the time limit
  kStepsDone,    // it has done its steps, and hangs: as the time limit
  kElsewhere,    // its point has failed on another node: as the time limit
  kOthersEnded,  // rank 0 ended well long ago, and it hangs: as the time limit
};

struct WatchLimits {
  int64_t meet_ns = 0;       // until it has begun; 0: it begins as it is started
  int64_t time_ns = 0;       // from when it has begun; 0: none
  int64_t others_ns = 0;     // for the others, from when the first process has ended well; 0: none
  int64_t memory_bytes = 0;  // resident, of all processes together; 0: none
  // Whose memory that is; nullptr: of the processes alone. Where it has a mark, they wait for what has that.
  ProcessTree* tree = nullptr;
  int64_t grace_ns = 0;
  int64_t save_ns = 0;
};

struct Watched {
  ExitStatus status;    // of the process that decides: the first that was killed, else that failed, else the first
  size_t process = 0;   // which that is
  bool killed = false;  // it ended by a SIGKILL that we did not send, or says that a process of its own did
  StopReason stopped = StopReason::kNone;
  bool began = true;                // before it ended
  int64_t rss_bytes = 0;            // kMemoryLimit: what they held when it was over
  int64_t rss_peak_bytes = 0;       // the sum of their peaks
  int64_t rank_rss_peak_bytes = 0;  // the largest of their peaks
};

// Whether we were told to stop, and why.
class StopWatcher {
 public:
  virtual ~StopWatcher() = default;
  virtual int fd() const = 0;       // readable when we were told something new
  virtual StopReason Reason() = 0;  // kNone, kPreempted or kTold, which outdoes it
};

// Blocks until the processes, each the leader of its process group, have ended and nothing of their groups is left.
// When one fails, the others have the grace time to end by themselves: they may be able to say why. `begun`, where
// there is a limit for that, says whether they have begun: it is asked every tenth of a second until they have.
// The memory limit is kept by looking at the resident set, ever more often the
// nearer it comes: it needs no cgroup and no address-space limit, which would refuse what is reserved but never used.
// `look`, where there is one, is called now and then, every second or so, while they run; what it says but kNone ends
// them.
// What is started for us gets our signals itself, and not who waits for it: srun takes SIGTERM for "kill all", and one
// SIGINT for a question.
Watched Watch(std::span<Child> children, const WatchLimits& limits, StopWatcher& stop, const Clock& clock,
              const std::function<bool()>& begun = {}, const std::function<StopReason()>& look = {});

// How long a process with `headroom_bytes` left cannot pass its limit: at the speed memory can be written, at least
// 1 ms and at most 100 ms.
int64_t NextLookNs(int64_t headroom_bytes);

}  // namespace ridgeline
