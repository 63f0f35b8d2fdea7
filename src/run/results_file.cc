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
#include "run/result.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

constexpr size_t kReadBytes = 1 << 20;

// The size of an open file.
int64_t RegularSize(int fd, const fs::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) ThrowErrno("cannot read " + path.string());
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("{} is not a regular file", path.string()));
  }
  return info.st_size;
}

}  // namespace

ResultsWriter::ResultsWriter(const fs::path& job_dir)
    : path_(ResultsFile(job_dir)),
      fd_(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644)) {
  if (fd_.get() < 0) ThrowErrno("cannot write " + path_.string());
  const int64_t size = RegularSize(fd_.get(), path_);
  char last = '\n';
  if (size > 0 && ::pread(fd_.get(), &last, 1, size - 1) != 1) ThrowErrno("cannot read " + path_.string());
  if (last != '\n') WriteAll(fd_.get(), "\n", path_);
  SyncFolder(job_dir);
}

void ResultsWriter::Append(const RunResult& result) {
  WriteAll(fd_.get(), FormatJobLine({std::string(kResultLine), result.point_id, DumpJson(EncodeResult(result))}),
           path_);
  if (::fsync(fd_.get()) != 0) ThrowErrno("cannot write " + path_.string());
}

bool ResultsReader::ReadNew(const std::function<bool(JobLine line)>& take) {
  const Fd fd(::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return true;
    ThrowErrno("cannot read " + path_.string());
  }
  if (RegularSize(fd.get(), path_) < offset_) offset_ = 0;  // another file is there now
  std::string rest;                                         // of a line that has begun
  for (;;) {
    const size_t had = rest.size();
    rest.resize(had + kReadBytes);
    const ssize_t n = ::pread(fd.get(), rest.data() + had, kReadBytes, offset_ + static_cast<int64_t>(had));
    if (n < 0 && errno != EINTR) ThrowErrno("cannot read " + path_.string());
    rest.resize(had + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0) return true;
    size_t begin = 0;
    bool enough = false;
    for (size_t end = rest.find('\n', had); end != std::string::npos && !enough; end = rest.find('\n', begin)) {
      auto line = ParseJobLine(std::string_view(rest).substr(begin, end - begin));
      enough = line && line->kind == kResultLine && !take(*std::move(line));
      begin = end + 1;
    }
    // What is longer than any line is passed over, and so is its end: that does not begin as lines do.
    if (rest.size() - begin > kMaxJobLineBytes) begin = rest.size();
    rest.erase(0, begin);
    offset_ += static_cast<int64_t>(begin);
    if (enough) return false;
  }
}

}  // namespace ridgeline
