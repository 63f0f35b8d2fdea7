#include "common/remote_job.h"

#include <fcntl.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "ridgeline/checksum.h"
#include "ridgeline/foreign_file.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/line_file.h"
#include "ridgeline/sealed_json.h"

namespace ridgeline::plugin {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kOutputPatience{10};

// Calls `take` for each complete line of such a file, without its line end. Does nothing if the file is not regular, or
// longer than any job's file. Skips lines longer than any line of a job. Throws Error if the system cannot read it.
void ReadLines(const fs::path& path, const std::function<void(std::string_view line)>& take) {
  const ForeignFile file(path);
  if (file.state() == ForeignFile::State::kUnreadable) ThrowUnread(file);
  if (!file.is_open() || file.size() > static_cast<int64_t>(kMaxResultsFileBytes)) return;
  int64_t offset = 0;
  const bool read = ReadWholeLines(file.fd(), offset, [&](std::string_view line) {
    take(line);
    return true;
  });
  if (!read) ThrowErrno("cannot read " + path.string());
}

// Appends a line, which ends in a line end, to a file, and makes the file if it is missing. The line is on the disk
// when it returns. Throws Error.
void AppendLine(const fs::path& path, std::string_view line) {
  const Fd file(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (file.get() < 0 || !AppendLineSynced(file.get(), line)) ThrowErrno("cannot write " + path.string());
}

// Calls `take` for each result line of a job's folder.
void ReadResults(const fs::path& job_dir, const std::function<void(const JobLine&)>& take) {
  ReadLines(ResultsFile(job_dir), [&](std::string_view text) {
    if (const auto line = ParseJobLine(text); line && line->kind == kResultLine) take(*line);
  });
}

}  // namespace

std::string JobFileFor(std::string_view text, const fs::path& job_dir, const fs::path& work) {
  Json job = Json::parse(text, nullptr, false);
  // A file that was changed since it was written is left for `exec` to refuse.
  if (!job.is_object() || !job.contains("job_dir") || !IsWhole(job)) return std::string(text);
  const fs::path from = fs::path(job.at("job_dir").get<std::string>()).parent_path().parent_path();
  job["job_dir"] = job_dir.string();
  job.erase("config");
  job.erase(kChecksumKey);
  for (Json& point : job["points"]) {
    const auto pointer = "/spec/checkpoint/dir"_json_pointer;
    const fs::path dir = point.value(pointer, "");
    if (dir.is_relative()) continue;
    const fs::path inside = dir.lexically_relative(from);
    if (!inside.empty() && *inside.begin() != "..") point[pointer] = (work / inside).string();
  }
  return SealedText(job) + '\n';
}

std::vector<std::string> PointsOf(std::string_view job_file_text) {
  const Json document = Json::parse(job_file_text, nullptr, false);
  std::vector<std::string> ids;
  if (!document.is_object()) return ids;
  for (const Json& point : document.value("points", Json::array())) ids.push_back(point.at("id").get<std::string>());
  return ids;
}

std::vector<std::string> TextParts(std::string_view text, size_t most_bytes) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t size = BytesOfWholeCharacters(text, most_bytes);
    parts.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return parts;
}

std::string NewSecret() {
  std::array<unsigned char, 32> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Failure(Failure::Kind::kInfrastructure, "the kernel gives no random numbers");
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool ReadsJobFile(const Json& job) {
  const auto exec = job.at("exec").get<std::vector<std::string>>();
  return std::find(exec.begin(), exec.end(), job.value("job_file", "")) != exec.end();
}

std::vector<std::string> ExecThere(const Json& job, const Elsewhere& there) {
  const auto exec = job.at("exec").get<std::vector<std::string>>();
  if (exec.empty()) return {};
  const auto job_file = job.value("job_file", std::string());
  std::vector<std::string> words = there.program;
  for (size_t i = 1; i < exec.size(); ++i) {
    if (exec[i] != job_file) {
      words.push_back(exec[i]);
      continue;
    }
    words.emplace_back("--print-results");
    if (!there.summary.empty()) words.insert(words.end(), {"--summary", there.summary});
    for (const std::string& dir : there.lines_dirs) words.insert(words.end(), {"--lines", dir});
    words.insert(words.end(), {"--job-dir", there.job_dir, there.job_file});
  }
  return words;
}

JobOutput::JobOutput(fs::path job_dir, const std::vector<std::string>& points)
    : job_dir_(std::move(job_dir)), points_(points.begin(), points.end()) {
  ReadResults(job_dir_, [&](const JobLine& line) {
    if (points_.contains(line.point_id)) have_[line.point_id] = Checksum(line.payload);
  });
  ReadLines(PartsFile(job_dir_), [&](std::string_view text) {
    if (const auto line = ParseJobLine(text)) parts_.insert(line->point_id + ' ' + Checksum(line->payload));
  });
}

void JobOutput::Keep(const std::string& point_id, const std::string& result) {
  // A log that is read again from its beginning repeats the same results.
  std::string hash = Checksum(result);
  if (const auto had = have_.find(point_id); had != have_.end() && had->second == hash) return;
  MakeDirs(job_dir_);
  AppendLine(ResultsFile(job_dir_), FormatJobLine({std::string(kResultLine), point_id, result}));
  have_[point_id] = std::move(hash);
  std::error_code ignored;
  fs::remove(ProgressFile(job_dir_, point_id), ignored);
  fs::remove(PointDir(job_dir_, point_id), ignored);
}

// Pods may write as much as they like, so the file has a size limit.
void JobOutput::KeepPart(const std::string& point_id, const std::string& part) {
  const fs::path file = PartsFile(job_dir_);
  std::error_code ec;
  const auto size = fs::file_size(file, ec);
  if (part.size() > kMaxPartBytes || (!ec && size > kMaxPartsFileBytes)) return;
  if (!parts_.insert(point_id + ' ' + Checksum(part)).second) return;
  MakeDirs(job_dir_);
  AppendLine(file, FormatJobLine({std::string(kPartLine), point_id, part}));
}

void JobOutput::TakeLine(const std::string& line) {
  std::optional<JobLine> told = ParseJobLine(line);
  if (!told) {
    log_tail_ += line + '\n';
    if (log_tail_.size() > 2 * kLogTailBytes) log_tail_.erase(0, log_tail_.size() - kLogTailBytes);
    return;
  }
  if (!points_.contains(told->point_id)) return;
  if (const std::optional<JobLine> whole = joiner_.Join(*std::move(told))) Take(*whole);
}

void JobOutput::Take(const JobLine& told) {
  if (told.kind == kResultLine) Keep(told.point_id, told.payload);
  if (told.kind == kPartLine) KeepPart(told.point_id, told.payload);
  if (told.kind != kProgressLine || have_.contains(told.point_id)) return;
  MakeDirs(PointDir(job_dir_, told.point_id));
  const std::string& progress = told.payload;
  if (progress.empty() || progress.size() >= kMaxProgressBytes) return;
  WriteFile(ProgressFile(job_dir_, told.point_id), progress + '\n');
}

void JobOutput::Rewind() {
  log_tail_.clear();
  joiner_ = {};
}

void JobOutput::TakeLastWords(const std::string& words) {
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

void JobOutput::CopyMissing(const fs::path& job_dir) {
  if (HasAll()) return;
  const std::map<std::string, std::string> had = have_;
  ReadResults(job_dir, [&](const JobLine& line) {
    if (points_.contains(line.point_id) && !had.contains(line.point_id)) Keep(line.point_id, line.payload);
  });
}

bool JobOutput::AnyBegan() const {
  return !have_.empty() || std::any_of(points_.begin(), points_.end(), [&](const std::string& id) {
    std::error_code ignored;
    return fs::exists(PointDir(job_dir_, id), ignored);
  });
}

void JobOutput::TakeOthersAsBegun() {
  for (const std::string& id : points_) {
    if (!have_.contains(id)) MakeDirs(PointDir(job_dir_, id));
  }
}

void JobOutput::CompleteEnd(const std::string& log_problem, const std::string& hint, Evidence& evidence) {
  const bool explained = evidence.contains("end");
  std::string problem = log_problem;
  if (explained || !HasAll()) AddLogTail(log_tail_, evidence);
  if (!HasAll() || headlines_ > 0) {
    if (problem.empty() && headlines_ > 0) problem = "its log was rotated away, or cut";
    if (!problem.empty()) evidence["log_problem"] = problem;
  }
  // If a job ended before it had a trainer, it did not start.
  const auto reason = evidence.find("reason");
  const auto exit_code = evidence.find("exit_code");
  const bool failed = exit_code != evidence.end() && exit_code->second != "0";
  if (reason != evidence.end() && reason->second == "lost" && failed && problem.empty() && !AnyBegan()) {
    reason->second = "start";
    evidence["message"] = "nothing was heard from a trainer: " + evidence["message"];
  }
  if (explained || HasAll()) return;
  TakeOthersAsBegun();
  evidence.try_emplace("message", problem.empty()
                                      ? "its log has no result of this point: the log was rotated or truncated"
                                      : "whether it has a result is not known: " + problem);
  if (!hint.empty()) evidence.try_emplace("hint", hint);
}

bool LastOutput::MayCome(bool has_come) {
  if (!since_) since_ = clock_->Now();
  return !has_come && clock_->Now() - *since_ < kOutputPatience;
}

}  // namespace ridgeline::plugin
