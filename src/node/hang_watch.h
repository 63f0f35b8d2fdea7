// Whether a defined trainer that still runs has nothing more to tell: one of its ranks ran out of memory or crashed,
// and the others wait for it; or its steps are done, and it does not end.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "node/watch.h"
#include "ridgeline/run.h"
#include "run/job.h"
#include "trainers/definition.h"
#include "trainers/ends.h"
#include "trainers/log_lines.h"

namespace ridgeline {

// How long it may hang. Less than any trainer's own time-out, and more than a step of most: where steps are longer, it
// has three times the longest.
inline constexpr int64_t kHangNs = 60'000'000'000;

struct HangPatience {
  int64_t hang_ns = kHangNs;
  int64_t quiet_start_ns = kUsualQuietStartS * 1'000'000'000;
};

// It has said its end (StopReason::kSaidEnd) where its logs tell of want of memory, and no step came for so long: two
// steps more, and it has overcome that. Of a crash, too, where it had done steps before and nothing at all is printed.
//
// It has done its steps (kStepsDone) where the last one's number, or as many as there are, was printed, and for so long
// nothing is printed, and next to nothing written to any file; what it said last must not be that it saves, evaluates
// or the like.
//
// It has not started (kMeetLimit) where no step was seen and for kUsualQuietStartS nothing was printed, next to nothing
// written, and hardly any processor time used. A trainer that compiles or downloads does one of these.
class HangWatch {
 public:
  // `here`: the logs of the processes here; `elsewhere`: of those on other nodes, as far as they can be seen. Files of
  // these that are older than the first log here are of an earlier attempt. `written`: bytes that its processes have
  // written by now. `used`: the processor time that they have used by now; none: how it starts is not watched.
  // `trainer` and `clock` must outlive it.
  HangWatch(const Trainer& trainer, const RunSpec& spec, const std::vector<std::filesystem::path>& here,
            const std::vector<std::filesystem::path>& elsewhere, const HangPatience& patience, const Clock& clock,
            std::function<int64_t()> written, std::function<int64_t()> used = {});
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  void NotBegun();           // it is still being started: that time is no silence of its own
  StopReason Look();         // kNone: it goes on
  StopReason AtTimeLimit();  // what the logs say by then; kTimeLimit where that is nothing

 private:
  struct Log {
    Log(const Trainer& trainer, std::filesystem::path file, bool here, LogLines::Take take)
        : path(std::move(file)), is_here(here), lines(std::move(take)), ends(trainer) {}
    std::filesystem::path path;
    bool is_here;
    LogLines lines;
    LogEnds ends;
    int64_t read_bytes = 0;
    int64_t pending_line = 0;   // of what it has said of its end; 0: nothing
    int64_t overcome_line = 0;  // of such that it has overcome
    int64_t pending_since_ns = 0;
    int64_t steps_before = 0;
  };
  // Steps, as one metric counts them.
  struct Count {
    const Metric* metric;
    int64_t values = 0;
    bool from_zero = false;
    int64_t last = -1;
  };

  void Read(bool all);
  void Line(Log& log, int64_t number, std::string_view line);
  bool IsDone() const;
  bool IsQuietAtStart();
  void LookAtWritten();
  std::optional<LogEnd> Pending();
  int64_t Patience() const;

  const int64_t steps_;
  const HangPatience patience_;
  const Clock& clock_;
  const std::function<int64_t()> written_;
  const std::function<int64_t()> used_;
  std::vector<Count> counts_;
  std::deque<Log> logs_;
  std::filesystem::file_time_type since_;
  int64_t next_elsewhere_ns_ = 0;
  int64_t seen_steps_ = 0;
  std::string last_step_;  // its number
  std::string last_line_;
  int64_t last_step_ns_ = 0;
  int64_t longest_step_ns_ = 0;
  int64_t last_output_ns_ = 0;
  int64_t last_written_ns_ = 0;
  int64_t written_bytes_ = 0;
  int64_t last_used_ns_ = 0;  // when it was last seen to compute
  int64_t used_ns_ = 0;       // as of `looked_at_use_ns_`
  int64_t looked_at_use_ns_ = 0;
};

}  // namespace ridgeline
