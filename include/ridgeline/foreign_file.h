// Opens files that a trainer or a job may have made or replaced: results, logs, progress, records, checkpoint files.
// Such a file may be a pipe without a writer, a link to /dev/zero, a folder, or endless. Reading it must then cost
// neither time nor memory; the reader gets a sentence that says what is wrong.
#ifndef RIDGELINE_FOREIGN_FILE_H_
#define RIDGELINE_FOREIGN_FILE_H_

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "ridgeline/limits.h"

namespace ridgeline {

class ForeignFile {
 public:
  enum class State {
    kOpen,
    kMissing,     // there is no such file
    kUnfit,       // it is not a regular file, or it is too long
    kUnreadable,  // the system refused; `problem` has its reason
  };
  // Whether to follow a symbolic link. Follow it only if a person or the system made it.
  enum class Links { kRefused, kFollowed };

  explicit ForeignFile(std::filesystem::path path, Links links = Links::kRefused) : path_(std::move(path)) {
    const bool follows = links == Links::kFollowed;
    // O_NONBLOCK: otherwise opening a pipe waits for a writer.
    fd_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW));
    const int error = errno;
    struct stat info {};
    // A refused link, a socket or a broken device cannot be opened, so its kind comes from its name.
    const bool known = fd_ >= 0  ? ::fstat(fd_, &info) == 0
                       : follows ? ::stat(path_.c_str(), &info) == 0
                                 : ::lstat(path_.c_str(), &info) == 0;
    if (known && !S_ISREG(info.st_mode)) {
      BeUnfit(NotRegular(info.st_mode));
    } else if (fd_ < 0 || !known) {
      BeUnreadable(fd_ < 0 ? error : errno);
    }
    size_ = info.st_size;
  }
  ForeignFile(const ForeignFile&) = delete;
  ForeignFile& operator=(const ForeignFile&) = delete;
  ~ForeignFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  const std::filesystem::path& path() const { return path_; }
  State state() const { return state_; }
  bool is_open() const { return state_ == State::kOpen; }
  // Why the file is not open or was not read. It continues a sentence that begins with the file's name: "is a folder,
  // not a regular file".
  const std::string& problem() const { return problem_; }
  int fd() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }
  int64_t size() const { return size_; }  // in bytes, when it was opened

  // Returns the whole content. Returns nothing if the file is not open, is longer than `max_bytes`, or cannot be read;
  // `problem` says why.
  std::optional<std::string> Read(size_t max_bytes) {
    if (!is_open()) return std::nullopt;
    if (size_ > static_cast<int64_t>(max_bytes)) return BeTooLong(max_bytes), std::nullopt;
    // Reads to the end, whatever the size: files in /proc have size 0, and others may have grown.
    return ReadFrom(0, max_bytes + 1, max_bytes);
  }

  // Returns the last `max_bytes` bytes, or nothing if the file is not open or cannot be read.
  std::optional<std::string> ReadTail(size_t max_bytes) {
    if (!is_open()) return std::nullopt;
    const auto size = static_cast<size_t>(size_);
    const size_t want = std::min(size, max_bytes);
    return ReadFrom(static_cast<int64_t>(size - want), want, want);
  }

  // Marks the file as unfit, because it is longer than its content can be.
  void BeTooLong(size_t max_bytes) {
    BeUnfit("has " + std::to_string(size_) + " bytes, and may have " + std::to_string(max_bytes));
  }

 private:
  static std::string NotRegular(mode_t mode) {
    const char* what = S_ISLNK(mode)    ? "a symbolic link"
                       : S_ISDIR(mode)  ? "a folder"
                       : S_ISFIFO(mode) ? "a named pipe"
                       : S_ISSOCK(mode) ? "a socket"
                                        : "a device";
    return std::string("is ") + what + ", not a regular file";
  }

  // Reads up to `want` bytes. More than `max_bytes` are an error.
  std::optional<std::string> ReadFrom(int64_t offset, size_t want, size_t max_bytes) {
    constexpr size_t kMostAtOnce = size_t{1} << 20;
    std::string bytes;
    bytes.reserve(std::min(want, static_cast<size_t>(size_)));
    while (bytes.size() < want) {
      const size_t had = bytes.size();
      bytes.resize(had + std::min(want - had, std::clamp(static_cast<size_t>(size_), size_t{4096}, kMostAtOnce)));
      const ssize_t n = ::pread(fd_, bytes.data() + had, bytes.size() - had, offset + static_cast<int64_t>(had));
      const int error = errno;
      bytes.resize(had + (n > 0 ? static_cast<size_t>(n) : 0));
      if (n < 0 && error == EINTR) continue;
      if (n < 0) return BeUnreadable(error), std::nullopt;
      if (n == 0) break;
    }
    if (bytes.size() <= max_bytes) return bytes;
    size_ = std::max(size_, static_cast<int64_t>(bytes.size()));
    return BeTooLong(max_bytes), std::nullopt;
  }

  void BeUnfit(std::string why) {
    state_ = State::kUnfit;
    problem_ = std::move(why);
  }
  void BeUnreadable(int error) {
    const bool missing = error == ENOENT || error == ENOTDIR;
    state_ = missing ? State::kMissing : State::kUnreadable;
    problem_ = missing ? "is missing" : std::string("cannot be read: ") + std::strerror(error);
  }

  std::filesystem::path path_;
  State state_ = State::kOpen;
  std::string problem_;
  int fd_ = -1;
  int64_t size_ = 0;
};

}  // namespace ridgeline

#endif  // RIDGELINE_FOREIGN_FILE_H_
