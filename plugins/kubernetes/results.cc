#include "kubernetes/results.h"

#include <chrono>

namespace ridgeline::kubernetes {
namespace {

constexpr std::chrono::seconds kReopenPause{1};
constexpr int kTriesAfterEnd = 3;
constexpr size_t kMostRefusalBytes = 4096;

}  // namespace

void PodLog::Pump(const PodView& pod, plugin::JobOutput& to) {
  const plugin::Clock::Time now = clock_.Now();
  const bool gone = pod.phase == kDeletedPhase;
  const bool over = !pod.running || gone;
  if (done_ || (!stream_ && now < not_before_)) return;
  if (!stream_) {
    stream_ = cluster_.Open(path_);
    after_end_ = over;
    to.Rewind();
    cluster_.Pump();
  }
  std::string line;
  std::string refusal;
  while (stream_->Next(line)) {
    if (stream_->code() == 200) {
      to.TakeLine(line);
      failures_ = 0;
    } else if (refusal.size() < kMostRefusalBytes) {
      refusal += line;
    }
  }
  if (!stream_->ended()) return;
  const bool whole = stream_->code() == 200 && stream_->problem().empty();
  problem_.clear();
  if (!whole) {
    ++failures_;
    const Response answer{stream_->problem().empty() ? stream_->code() : 0, refusal, stream_->problem(), 0,
                          stream_->retry_after_s()};
    problem_ = cluster_.ToFailure(answer, "read the log of pod " + pod.name).what();
  }
  stream_.reset();
  if (over) {
    // A log that was followed to its end is complete. Any other is read once more, if possible.
    ++tries_after_end_;
    done_ = gone || (whole && (after_end_ || to.HasAll())) || tries_after_end_ >= kTriesAfterEnd;
  }
  not_before_ = whole && over ? now : now + kReopenPause;
}

}  // namespace ridgeline::kubernetes
