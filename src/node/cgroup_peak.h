// The most memory that our cgroup held.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/files.h"

namespace ridgeline {

// Counts from now on, as the kernel does: exactly, and with the page cache of what was read and written, so that it is
// no less than what processes held.
class CgroupPeak {
 public:
  // `root` is "/" but in tests, and `resets` says whether the kernel is asked to begin anew, as Linux does from 6.12
  // on.
  explicit CgroupPeak(const std::filesystem::path& root = "/", bool resets = true);

  // To be asked when nothing that we started runs any more. 0 where nobody knows: the kernel does not say (cgroups of
  // version 2 are asked for memory.peak, those of the first for memory.max_usage_in_bytes), somebody else is in our
  // cgroup or in one below it, or its peak is of earlier times.
  int64_t Bytes() const;

 private:
  std::filesystem::path folder_;  // empty: nobody says, or it is not ours alone
  std::optional<Fd> file_;
  int64_t before_ = 0;
  bool is_anew_ = false;
};

}  // namespace ridgeline
