#include "run/results_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "ridgeline/line_file.h"
#include "run/result.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

void RequireRegular(int fd, const fs::path& path, struct stat& info) {
  if (::fstat(fd, &info) != 0) ThrowErrno("cannot read " + path.string());
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("{} is not a regular file", path.string()));
  }
}

// The lines from `offset` on, which moves along. None where there is no file.
void ReadLines(const fs::path& path, int flags, int64_t& offset,
               const std::function<bool(std::string_view line)>& take) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | flags));
  if (fd.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return;
    ThrowErrno("cannot read " + path.string());
  }
  struct stat info {};
  RequireRegular(fd.get(), path, info);
  if (info.st_size < offset) offset = 0;  // another file is there now
  if (!ReadWholeLines(fd.get(), offset, take)) ThrowErrno("cannot read " + path.string());
}

}  // namespace

ResultsWriter::ResultsWriter(const fs::path& job_dir)
    : path_(ResultsFile(job_dir)),
      fd_(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644)) {
  if (fd_.get() < 0) ThrowErrno("cannot write " + path_.string());
  struct stat info {};
  RequireRegular(fd_.get(), path_, info);
  SyncFolder(job_dir);
}

void ResultsWriter::Append(const RunResult& result) {
  const JobLine line{std::string(kResultLine), result.point_id, DumpJson(EncodeResult(result))};
  if (!AppendLineSynced(fd_.get(), FormatJobLine(line))) ThrowErrno("cannot write " + path_.string());
  // What nobody finds under its name is lost when we end.
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
  ReadLines(path_, O_NOFOLLOW, offset_, [&](std::string_view text) {
    auto line = ParseJobLine(text);
    if (line && line->kind == kResultLine) all = take(*std::move(line));
    return all;
  });
  return all;
}

void ReadPrintedResults(const fs::path& log, const std::function<void(JobLine line)>& take) {
  int64_t offset = 0;
  ReadLines(log, 0, offset, [&](std::string_view text) {
    const size_t begin = std::min(text.find(kJobLineMark), text.size());
    if (auto line = ParseJobLine(text.substr(begin)); line && line->kind == kResultLine) take(*std::move(line));
    return true;
  });
}

}  // namespace ridgeline
