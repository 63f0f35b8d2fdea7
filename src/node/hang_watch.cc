#include "node/hang_watch.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "node/feed_log.h"
#include "run/consistency.h"
#include "run/job.h"
#include "trainers/patterns.h"

namespace ridgeline::node {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostInOneLook = 16 << 20;  // bytes of a log per look
constexpr int64_t kStepsOvercome = 2;         // as in LogEnds, over all logs
constexpr int64_t kLongestSteps = 3;
constexpr int64_t kElsewhereShare = 6;  // divides the patience: the time between looks at other nodes' files
constexpr size_t kMostElsewhere = 256;
constexpr int64_t kLittleWritten = int64_t{1} << 20;  // more than a log's lines, and less than any checkpoint file
constexpr int64_t kUseShare = 30;    // divides the patience at the start: the time between looks at the processor time
constexpr int64_t kLittleUsed = 20;  // divides the time: less than this part of one core, as polling threads use
constexpr size_t kMostLastLine = 4096;
constexpr std::chrono::seconds kClocksDiffer(60);

// Whether the line shows that something goes on after the last step.
bool IsBusy(std::string_view line) {
  static const trainers::Pattern busy(
      R"((?i)\b(?:saving|writing|uploading|pushing|exporting|converting|merging|consolidating|gathering|evaluating|)"
      R"(validating|testing|compressing|generating|finalizing|flushing|running (?:the )?(?:final )?(?:eval|valid|test))\b|)"
      R"(\bwaiting for (?:the )?(?:\w+ )?(?:checkpoint|upload|save))");
  return busy.Find(line).has_value();
}

int64_t NumberOf(std::string_view text) {
  std::string digits(text);
  std::erase(digits, ',');
  return std::atoll(digits.c_str());
}

}  // namespace

HangWatch::HangWatch(const trainers::Trainer& trainer, const RunSpec& spec, const std::vector<fs::path>& here,
                     const std::vector<fs::path>& elsewhere, const HangPatience& patience, const Clock& clock,
                     std::function<std::optional<int64_t>()> written, std::function<std::optional<int64_t>()> used)
    : steps_(StepsOf(spec)), patience_(patience), clock_(clock), written_(std::move(written)), used_(std::move(used)) {
  for (const trainers::Metric& metric : trainer.metrics) {
    if (metric.pattern && metric.take == trainers::Take::kSeries) counts_.push_back({&metric});
  }
  const auto follow = [&](const fs::path& path, bool is_here) {
    const size_t at = logs_.size();
    logs_.emplace_back(trainer, path, is_here,
                       [this, at](int64_t number, std::string_view line) { Line(logs_[at], number, line); });
  };
  for (const fs::path& path : here) follow(path, true);
  for (size_t i = 0; i < std::min(elsewhere.size(), kMostElsewhere); ++i) follow(elsewhere[i], false);
  std::error_code ec;
  since_ = here.empty() ? fs::file_time_type::clock::now() : fs::last_write_time(here.front(), ec);
  last_output_ns_ = last_written_ns_ = last_used_ns_ = looked_at_use_ns_ = clock_.MonotonicNs();
}

void HangWatch::Line(Log& log, int64_t number, std::string_view line) {
  std::optional<std::string_view> step;
  for (Count& count : counts_) {
    const auto match = count.metric->pattern->Find(line);
    if (!match || !match->has_value) continue;
    const std::string_view text = match->step.value_or("");
    if (!step) step = text;
    if (count.values++ == 0) count.from_zero = text == "0";
    if (!text.empty()) count.last = std::max(count.last, NumberOf(text));
  }
  if (step) {
    log.ends.Step(*step);
    if (step->empty() || *step != last_step_) {
      ++seen_steps_;
      const int64_t now_ns = clock_.MonotonicNs();
      if (last_step_ns_ != 0) longest_step_ns_ = std::max(longest_step_ns_, now_ns - last_step_ns_);
      last_step_ns_ = now_ns;
    }
    last_step_ = step->substr(0, kMostLastLine);
  }
  log.ends.Line(number, line);
  if (!line.empty()) last_line_ = line.substr(0, kMostLastLine);
}

void HangWatch::Read(bool all) {
  const int64_t now_ns = clock_.MonotonicNs();
  const bool elsewhere = all || now_ns >= next_elsewhere_ns_;
  if (elsewhere) next_elsewhere_ns_ = now_ns + patience_.hang_ns / kElsewhereShare;
  for (Log& log : logs_) {
    if (!log.is_here) {
      std::error_code ec;
      if (!elsewhere) continue;
      if (const auto time = fs::last_write_time(log.path, ec); ec || time + kClocksDiffer < since_) continue;
    }
    int64_t read = 0;
    do {
      read = FeedLog(log.path, log.read_bytes, kMostInOneLook, [&](std::string_view bytes) { log.lines.Feed(bytes); });
      log.read_bytes += read;
      if (read > 0) last_output_ns_ = now_ns;
    } while (all && read > 0);
  }
}

bool HangWatch::IsDone() const {
  return std::any_of(counts_.begin(), counts_.end(), [&](const Count& count) {
    return count.last < 0 ? count.values >= steps_ : count.last >= steps_ - (count.from_zero ? 1 : 0);
  });
}

int64_t HangWatch::Patience() const { return std::max(patience_.hang_ns, kLongestSteps * longest_step_ns_); }

// The first cause after which nothing went on, with the time when it was seen.
std::optional<trainers::LogEnd> HangWatch::Pending() {
  std::vector<std::optional<trainers::LogEnd>> ends;
  const int64_t now_ns = clock_.MonotonicNs();
  for (Log& log : logs_) {
    std::optional<trainers::LogEnd> end = log.ends.Pending();
    if (!end || end->line == log.overcome_line) continue;
    if (end->line != log.pending_line) {
      log.pending_line = end->line;
      log.pending_since_ns = now_ns;
      log.steps_before = seen_steps_;
    }
    if (seen_steps_ - log.steps_before >= kStepsOvercome) {
      log.overcome_line = end->line;
      continue;
    }
    const bool is_memory = end->end == RunStatus::kOomDevice || end->end == RunStatus::kOomHost;
    int64_t since_ns = std::max(log.pending_since_ns, last_step_ns_);
    if (!is_memory) since_ns = std::max(since_ns, last_output_ns_);
    // A program that has done no step may have raised an error, and go on.
    if ((is_memory || seen_steps_ > 0) && now_ns - since_ns >= Patience()) ends.push_back(std::move(end));
  }
  return trainers::FirstCause(ends);
}

void HangWatch::NotBegun() { last_output_ns_ = clock_.MonotonicNs(); }

void HangWatch::LookAtWritten() {
  const std::optional<int64_t> written_bytes = written_();
  if (written_bytes && std::abs(*written_bytes - written_bytes_) < kLittleWritten) return;
  written_bytes_ = written_bytes.value_or(written_bytes_);
  last_written_ns_ = clock_.MonotonicNs();
}

// If no step can be seen, because the definition has no series, this never holds.
bool HangWatch::IsQuietAtStart() {
  if (!used_ || counts_.empty() || seen_steps_ > 0) return false;
  const int64_t now_ns = clock_.MonotonicNs();
  const int64_t since_ns = now_ns - looked_at_use_ns_;
  if (since_ns >= patience_.quiet_start_ns / kUseShare) {
    LookAtWritten();
    const std::optional<int64_t> used_ns = used_();
    if (!used_ns || std::abs(*used_ns - used_ns_) >= since_ns / kLittleUsed) last_used_ns_ = now_ns;
    used_ns_ = used_ns.value_or(used_ns_);
    looked_at_use_ns_ = now_ns;
  }
  return now_ns - std::max({last_output_ns_, last_written_ns_, last_used_ns_}) >= patience_.quiet_start_ns;
}

StopReason HangWatch::Look() {
  Read(/*all=*/false);
  if (Pending()) return StopReason::kSaidEnd;
  if (IsQuietAtStart()) return StopReason::kMeetLimit;
  if (!IsDone()) return StopReason::kNone;
  LookAtWritten();
  const int64_t now_ns = clock_.MonotonicNs();
  const int64_t quiet_ns = now_ns - std::max(last_output_ns_, last_written_ns_);
  return quiet_ns >= Patience() && !IsBusy(last_line_) ? StopReason::kStepsDone : StopReason::kNone;
}

StopReason HangWatch::AtTimeLimit() {
  Read(/*all=*/true);
  if (IsDone()) return StopReason::kStepsDone;
  for (Log& log : logs_) {
    const std::optional<trainers::LogEnd> end = log.ends.Pending();
    if (!end || end->line == log.overcome_line) continue;
    const bool is_memory = end->end == RunStatus::kOomDevice || end->end == RunStatus::kOomHost;
    if (is_memory || seen_steps_ > 0) return StopReason::kSaidEnd;
  }
  return StopReason::kTimeLimit;
}

}  // namespace ridgeline::node
