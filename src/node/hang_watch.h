// Detects a defined trainer that still runs but will report nothing more: one of its ranks ran out of memory or crashed
// and the others wait for it, or its steps are done and it does not end.
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

namespace ridgeline::node {

// How long it may hang. This is less than any trainer's own time-out, and more than most steps take. If steps are
// longer, it has three times the longest.
inline constexpr int64_t kHangNs = 60'000'000'000;

struct HangPatience {
  int64_t hang_ns = kHangNs;
  int64_t quiet_start_ns = kUsualQuietStartS * 1'000'000'000;
};

// kSaidEnd: its logs report that memory ran out, and no step came for that long. Two more steps mean that it has
// recovered. The same holds for a crash, if it had done steps before and prints nothing at all.
//
// kStepsDone: it printed the last step's number, or as many steps as there are, and for that long it prints nothing and
// writes next to nothing to any file. Its last output must not say that it saves, evaluates or the like.
//
// kMeetLimit: no step was seen, and for kUsualQuietStartS it printed nothing, wrote next to nothing and used hardly any
// processor time. A trainer that compiles or downloads does one of these.
class HangWatch {
 public:
  // `here`: the logs of the processes here. `elsewhere`: those on other nodes, as far as they can be seen; files of
  // these that are older than the first log here are from an earlier attempt. `written`: the bytes that its processes
  // have written so far. `used`: the processor time that they have used so far; without it, the start is not watched.
  // While either returns nothing, because nobody can look, the processes count as busy.
  // `trainer` and `clock` must outlive the object.
  HangWatch(const trainers::Trainer& trainer, const RunSpec& spec, const std::vector<std::filesystem::path>& here,
            const std::vector<std::filesystem::path>& elsewhere, const HangPatience& patience, const Clock& clock,
            std::function<std::optional<int64_t>()> written, std::function<std::optional<int64_t>()> used = {});
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  void NotBegun();           // it is still starting; that time does not count as silence
  StopReason Look();         // kNone: it goes on
  StopReason AtTimeLimit();  // the end that the logs report; kTimeLimit if none

 private:
  struct Log {
    Log(const trainers::Trainer& trainer, std::filesystem::path file, bool here, trainers::LogLines::Take take)
        : path(std::move(file)), is_here(here), lines(std::move(take)), ends(trainer) {}
    std::filesystem::path path;
    bool is_here;
    trainers::LogLines lines;
    trainers::LogEnds ends;
    int64_t read_bytes = 0;
    int64_t pending_line = 0;   // the line that reports its end; 0: none
    int64_t overcome_line = 0;  // the last such line from which it has recovered
    int64_t pending_since_ns = 0;
    int64_t steps_before = 0;
  };
  // The steps that one metric counts.
  struct Count {
    const trainers::Metric* metric;
    int64_t values = 0;
    bool from_zero = false;
    int64_t last = -1;
  };

  void Read(bool all);
  void Line(Log& log, int64_t number, std::string_view line);
  bool IsDone() const;
  bool IsQuietAtStart();
  void LookAtWritten();
  std::optional<trainers::LogEnd> Pending();
  int64_t Patience() const;

  const int64_t steps_;
  const HangPatience patience_;
  const Clock& clock_;
  const std::function<std::optional<int64_t>()> written_;
  const std::function<std::optional<int64_t>()> used_;
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
  int64_t last_used_ns_ = 0;  // when it last used processor time
  int64_t used_ns_ = 0;       // as of `looked_at_use_ns_`
  int64_t looked_at_use_ns_ = 0;
};

}  // namespace ridgeline::node
