// What a person who watches a run sees: counts, the current point's step, the time left. Pure: figures in, text out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/collect.h"
#include "ridgeline/run.h"
#include "run/fields.h"

namespace ridgeline::driver {

// The content of a trainer's progress file (ridgeline/job_dir.h).
struct PointProgress {
  int64_t step = 0;
  int64_t steps = 0;
  double tokens_per_s = 0;
  // The last step's loss; nothing if the trainer does not report it, or it is not finite.
  std::optional<double> loss = std::nullopt;
};
// Returns nothing if the text is not one whole line.
std::optional<PointProgress> ParseProgress(std::string_view text);

struct LivePoint {
  std::string label;
  std::optional<PointProgress> progress;
};

struct RunProgress {
  int64_t total = 0;      // points of the sweep
  int64_t done = 0;       // points that ended ok, in this run or before
  int64_t failed = 0;     // points that ended any other way, in this run or before
  int64_t runs = 0;       // of all points: each has as many as its repeats
  int64_t runs_left = 0;  // runs that are to be done or have no result
  int64_t queued_jobs = 0;
  std::string queued_for = {};  // QueueText of the first queued job that says why
  std::vector<LivePoint> live;
  int64_t left_ns = 0;  // estimated; 0: unknown
};

// Returns one line of at most `columns` characters, without the figures that do not fit: "[3/8] 1 failed  batch_size=8
// checkpointing=full  step 4/17  1.2K tokens/s left 3 min 10 s".
std::string ProgressLine(const RunProgress& progress, size_t columns);

// Returns "[3/8]", the points that have ended. If points have several repeats, counts runs instead.
std::string EndedOf(const RunProgress& progress);

// Returns why a job is queued and when it is expected to start, as in "Priority, from Nov 24 14:32"; empty if neither
// is known.
std::string QueueText(std::string_view pending, int64_t expected_unix_s);

// Returns in a few words how a run ended of a point with `repeats` repeats: "ok  1.2K tokens/s; repeat 2 of 3",
// "oom_host the message".
std::string OutcomeText(const collect::Collected& result, int64_t repeats);

}  // namespace ridgeline::driver
