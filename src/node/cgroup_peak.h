// The peak memory of our cgroup.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/files.h"

namespace ridgeline::node {

// Counts from now on, as the kernel does: exactly, and with the page cache of what was read and written. So it is at
// least what the processes held.
class CgroupPeak {
 public:
  // `root` is "/" except in tests. `resets`: whether the kernel is asked to start again, which Linux supports from 6.12
  // on.
  explicit CgroupPeak(const std::filesystem::path& root = "/", bool resets = true);

  // Call this when no process that we started still runs. Returns 0 if the peak is unknown: the kernel does not report
  // it (memory.peak in cgroups of version 2, memory.max_usage_in_bytes in version 1), another process is in our cgroup
  // or one below it, or the peak is from earlier.
  int64_t Bytes() const;

 private:
  std::filesystem::path folder_;  // empty: unknown, or other processes share it
  std::optional<Fd> file_;
  int64_t before_ = 0;
  bool is_anew_ = false;
};

}  // namespace ridgeline::node
