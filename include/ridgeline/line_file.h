// Files of lines that grow while others read them: a job's results file (job_dir.h), a pod's log.
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

// Calls `take` with each complete line of the open file `fd`, without its end, starting at byte `offset`. Stops at the
// end of the file, or when `take` returns false. Sets `offset` to the beginning of the next line. Skips lines longer
// than kMaxJobLineBytes, so memory is bounded. Returns false, with errno set, if the file cannot be read.
inline bool ReadWholeLines(int fd, int64_t& offset, const std::function<bool(std::string_view line)>& take) {
  char block[1 << 16];
  std::string rest;  // the bytes from `offset` on: a line that is not complete yet
  for (;;) {
    const size_t had = rest.size();
    const ssize_t n = ::pread(fd, block, sizeof block, offset + static_cast<int64_t>(had));
    if (n < 0 && errno != EINTR) return false;
    if (n == 0) return true;
    rest.append(block, n > 0 ? static_cast<size_t>(n) : 0);
    size_t begin = 0;
    bool more = true;
    for (size_t end = rest.find('\n', had); more && end != std::string::npos; end = rest.find('\n', begin)) {
      more = take(std::string_view(rest).substr(begin, end - begin));
      begin = end + 1;
    }
    // The rest of such a line is ignored, too: it does not begin as a line does.
    if (more && rest.size() - begin > kMaxJobLineBytes) begin = rest.size();
    rest.erase(0, begin);
    offset += static_cast<int64_t>(begin);
    if (!more) return true;
  }
}

// Appends `line`, which has its line end, to `fd`, and syncs it to the disk. `fd` must be open for reading and
// appending, and only one writer may write at a time. If an earlier writer left an incomplete line, that stays a line
// of its own. Returns false, with errno set, if writing fails.
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
