#include "kubernetes/results.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "common/files.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/job_line.h"

namespace ridgeline::kubernetes {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kReopenPause{1};
constexpr int kTriesAfterEnd = 3;
constexpr size_t kMostRefusalBytes = 4096;

// Calls `take` for each result line of a job's folder.
void ReadResults(const fs::path& job_dir, const std::function<void(const JobLine&)>& take) {
  plugin::ReadLines(ResultsFile(job_dir), [&](std::string_view text) {
    if (const auto line = ParseJobLine(text); line && line->kind == kResultLine) take(*line);
  });
}

}  // namespace

ResultFolder::ResultFolder(const Record& record)
    : job_dir_(record.job_dir), points_(record.points.begin(), record.points.end()) {
  ReadResults(job_dir_, [&](const JobLine& line) {
    if (points_.contains(line.point_id)) have_[line.point_id] = JobLineHash(line.payload);
  });
  plugin::ReadLines(PartsFile(job_dir_), [&](std::string_view text) {
    if (const auto line = ParseJobLine(text)) parts_.insert(line->point_id + ' ' + JobLineHash(line->payload));
  });
}

void ResultFolder::Keep(const std::string& point_id, const std::string& result) {
  // A log that is read again from its beginning repeats the same results.
  std::string hash = JobLineHash(result);
  if (const auto had = have_.find(point_id); had != have_.end() && had->second == hash) return;
  plugin::MakeDirs(job_dir_);
  plugin::AppendLineSynced(ResultsFile(job_dir_), FormatJobLine({std::string(kResultLine), point_id, result}));
  have_[point_id] = std::move(hash);
  std::error_code ignored;
  fs::remove(ProgressFile(job_dir_, point_id), ignored);
  fs::remove(PointDir(job_dir_, point_id), ignored);
}

// Pods may write as much as they like, so the file has a size limit.
void ResultFolder::KeepPart(const std::string& point_id, const std::string& part) {
  const fs::path file = PartsFile(job_dir_);
  std::error_code ec;
  const auto size = fs::file_size(file, ec);
  if (part.size() > kMaxPartBytes || (!ec && size > kMaxPartsFileBytes)) return;
  if (!parts_.insert(point_id + ' ' + JobLineHash(part)).second) return;
  plugin::MakeDirs(job_dir_);
  plugin::AppendLineSynced(file, FormatJobLine({std::string(kPartLine), point_id, part}));
}

void ResultFolder::TakeLine(const std::string& line) {
  const std::optional<JobLine> told = ParseJobLine(line);
  if (!told) {
    log_tail_ += line + '\n';
    if (log_tail_.size() > 2 * kLogTailBytes) log_tail_.erase(0, log_tail_.size() - kLogTailBytes);
    return;
  }
  if (!points_.contains(told->point_id)) return;
  if (told->kind == kResultLine) Keep(told->point_id, told->payload);
  if (told->kind == kPartLine) KeepPart(told->point_id, told->payload);
  if (told->kind != kProgressLine || have_.contains(told->point_id)) return;
  plugin::MakeDirs(PointDir(job_dir_, told->point_id));
  const std::string& progress = told->payload;
  if (progress.empty() || progress.size() >= kMaxProgressBytes) return;
  plugin::WriteText(ProgressFile(job_dir_, told->point_id), progress + '\n');
}

void ResultFolder::TakeLastWords(const std::string& words) {
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find('\n', at), words.size());
    const std::optional<JobLine> told = ParseJobLine(std::string_view(words).substr(at, end - at));
    if (told && told->kind == kResultLine && points_.contains(told->point_id) && !have_.contains(told->point_id)) {
      Keep(told->point_id, told->payload);
      ++headlines_;
    }
    at = end + 1;
  }
}

void ResultFolder::CopyMissing(const fs::path& job_dir) {
  if (HasAll()) return;
  const std::map<std::string, std::string> had = have_;
  ReadResults(job_dir, [&](const JobLine& line) {
    if (points_.contains(line.point_id) && !had.contains(line.point_id)) Keep(line.point_id, line.payload);
  });
}

bool ResultFolder::AnyBegan() const {
  return !have_.empty() || std::any_of(points_.begin(), points_.end(), [&](const std::string& id) {
    std::error_code ignored;
    return fs::exists(PointDir(job_dir_, id), ignored);
  });
}

void ResultFolder::TakeOthersAsBegun() {
  for (const std::string& id : points_) {
    if (!have_.contains(id)) plugin::MakeDirs(PointDir(job_dir_, id));
  }
}

void PodLog::Pump(const PodView& pod, ResultFolder& to) {
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
