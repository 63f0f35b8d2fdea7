// Files of lines that grow at their end while others read them: a job's results file (job_dir.h), a pod's log.
#ifndef RIDGELINE_LINE_FILE_H_
#define RIDGELINE_LINE_FILE_H_

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ridgeline/limits.h"

namespace ridgeline {

// Hands over the lines of the open file `fd` that have come whole, without their ends, from byte `offset` on, until
// `take` says false: that was enough. Then `offset` is where the next line begins. What is longer than any line of a
// job is passed over, so memory is bounded by one such line. False, with errno set, where the file cannot be read.
inline bool ReadWholeLines(int fd, int64_t& offset, const std::function<bool(std::string_view line)>& take) {
  constexpr size_t kReadBytes = 1 << 20;
  std::string rest;  // from `offset` on: of a line that has begun
  for (;;) {
    const size_t had = rest.size();
    rest.resize(had + kReadBytes);
    const ssize_t n = ::pread(fd, rest.data() + had, kReadBytes, offset + static_cast<int64_t>(had));
    rest.resize(had + (n > 0 ? static_cast<size_t>(n) : 0));
    if (n < 0 && errno != EINTR) return false;
    if (n == 0) return true;
    size_t begin = 0;
    bool more = true;
    for (size_t end = rest.find('\n', had); more && end != std::string::npos; end = rest.find('\n', begin)) {
      more = take(std::string_view(rest).substr(begin, end - begin));
      begin = end + 1;
    }
    // What is left of too long a line begins as no line does.
    if (more && rest.size() - begin > kMaxJobLineBytes) begin = rest.size();
    rest.erase(0, begin);
    offset += static_cast<int64_t>(begin);
    if (!more) return true;
  }
}

// Appends a line, with its end, to the file that is open as `fd` for reading and appending: on the disk when it
// returns. What an earlier writer was killed at, or found no room for, stays a line of its own. One at a time may
// write. False, with errno set, where it cannot.
inline bool AppendLineSynced(int fd, std::string_view line) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  char last = '\n';
  if (size < 0 || (size > 0 && ::pread(fd, &last, 1, size - 1) != 1)) return false;
  std::string text;
  if (last != '\n') text += '\n';
  text += line;
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) at += static_cast<size_t>(n);
  }
  return ::fsync(fd) == 0;
}

}  // namespace ridgeline

#endif  // RIDGELINE_LINE_FILE_H_
