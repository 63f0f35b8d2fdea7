// What a person watching a run is told: counts, the current point's step, the time left. Pure: figures in, text out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/collect.h"
#include "ridgeline/run.h"
#include "run/fields.h"

namespace ridgeline {

// A trainer's progress file (ridgeline/job_dir.h).
struct PointProgress {
  int64_t step = 0;
  int64_t steps = 0;
  double tokens_per_s = 0;
  std::optional<double> loss = std::nullopt;  // of the last step; nothing where the trainer does not say, or not finite
};
// Nothing where the text is not one whole line of it.
std::optional<PointProgress> ParseProgress(std::string_view text);

struct LivePoint {
  std::string label;
  std::optional<PointProgress> progress;
};

struct RunProgress {
  int64_t total = 0;      // points of the sweep
  int64_t done = 0;       // ended ok, in this run or before
  int64_t failed = 0;     // ended any other way, the same
  int64_t runs = 0;       // of all points: each has as many as it has repeats
  int64_t runs_left = 0;  // of those, to be done, or without a result
  int64_t queued_jobs = 0;
  std::string queued_for = {};  // QueueText of the first of them that says why
  std::vector<LivePoint> live;
  int64_t left_ns = 0;  // estimated; 0: unknown
};

// One line of at most `columns` characters, without the figures that do not fit: "[3/8] 1 failed  batch_size=8
// checkpointing=full  step 4/17  1.2K tokens/s left 3 min 10 s".
std::string ProgressLine(const RunProgress& progress, size_t columns);

// "[3/8]": points that have ended; where points have several repeats, runs.
std::string EndedOf(const RunProgress& progress);

// "batch_size=8 checkpointing=full"; the model's name where nothing varies. Control characters are shown as escapes.
std::string PointLabel(const RunSpec& spec, const std::vector<const Field*>& varying);

// Why a job is queued, and when it is thought to start: "Priority, from Nov 24 14:32"; empty where neither is known.
std::string QueueText(std::string_view pending, int64_t expected_unix_s);

// How a run of a point that is measured so often ended, in a few words: "ok  1.2K tokens/s; repeat 2 of 3", "oom_host
// the message".
std::string OutcomeText(const Collected& result, int64_t repeats);

}  // namespace ridgeline
