#include "run/results_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "ridgeline/foreign_file.h"
#include "ridgeline/limits.h"
#include "ridgeline/line_file.h"
#include "run/figures.h"
#include "run/result.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

// Reads the lines from `offset` on, and advances it. Reads none if there is no file.
void ReadLines(const fs::path& path, ForeignFile::Links links, int64_t& offset,
               const std::function<bool(std::string_view line)>& take) {
  ForeignFile file(path, links);
  if (file.state() == ForeignFile::State::kMissing) return;
  if (file.size() > static_cast<int64_t>(kMaxResultsFileBytes)) file.BeTooLong(kMaxResultsFileBytes);
  if (!file.is_open()) ThrowUnread(file);
  if (file.size() < offset) offset = 0;  // another file has replaced it
  if (!ReadWholeLines(file.fd(), offset, take)) ThrowErrno("cannot read " + path.string());
}

std::string LineOf(const RunResult& result) {
  return FormatJobLine({std::string(kResultLine), result.point_id, DumpJson(EncodeResult(result))});
}

}  // namespace

ResultsWriter::ResultsWriter(const fs::path& job_dir)
    : path_(ResultsFile(job_dir)),
      fd_(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666)) {
  struct stat info {};
  if (fd_.get() < 0 || ::fstat(fd_.get(), &info) != 0) ThrowErrno("cannot write " + path_.string());
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("{} is not a regular file", path_.string()));
  }
  SyncFolder(job_dir);
}

void ResultsWriter::Append(const RunResult& result) {
  std::string line = LineOf(result);
  if (line.size() > kMaxJobLineBytes) {
    RunResult headline = result;
    DropSeries(headline);
    headline.evidence["series"] = "left out: with them its line would be longer than any that is read";
    line = LineOf(headline);
  }
  if (!AppendLineSynced(fd_.get(), line)) ThrowErrno("cannot write " + path_.string());
  // A file that is not found under its name would be lost when we end.
  struct stat ours {};
  struct stat named {};
  if (::fstat(fd_.get(), &ours) != 0 || ::lstat(path_.c_str(), &named) != 0 || ours.st_dev != named.st_dev ||
      ours.st_ino != named.st_ino) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{} was removed, or put elsewhere, while it was written", path_.string()),
                "let the job's folder be while it runs");
  }
}

bool ResultsReader::ReadNew(const std::function<bool(JobLine line)>& take) {
  bool all = true;
  ReadLines(path_, ForeignFile::Links::kRefused, offset_, [&](std::string_view text) {
    auto line = ParseJobLine(text);
    if (line && line->kind == kResultLine) {
      all = take(*std::move(line));
    } else {
      ++broken_;
    }
    return all;
  });
  return all;
}

void ReadPartLines(const fs::path& job_dir, int64_t& offset, const std::function<void(JobLine line)>& take) {
  ReadLines(PartsFile(job_dir), ForeignFile::Links::kRefused, offset, [&](std::string_view text) {
    if (auto line = ParseJobLine(text); line && line->kind == kPartLine) take(*std::move(line));
    return true;
  });
}

void ReadPrintedLines(const fs::path& log, const std::function<void(JobLine line)>& take) {
  int64_t offset = 0;
  JobLineJoiner joiner;
  // Follows links, because a person saved the log wherever they like.
  ReadLines(log, ForeignFile::Links::kFollowed, offset, [&](std::string_view text) {
    const size_t begin = std::min(text.find(kJobLineMark), text.size());
    auto line = ParseJobLine(text.substr(begin));
    if (line) line = joiner.Join(*std::move(line));
    if (line && (line->kind == kResultLine || line->kind == kPartLine)) take(*std::move(line));
    return true;
  });
}

}  // namespace ridgeline
