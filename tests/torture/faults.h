// What faults.cc makes of a program's system calls, as a torturer wants it at the moment: shared memory, in a file that
// $RIDGELINE_FAULTS names to the program.
#pragma once

#include <atomic>
#include <cstdint>

namespace ridgeline::testing {

struct Faults {
  // Of 1000 reads, writes and syncs of a regular file below `folder`.
  std::atomic<uint32_t> failing = 0;        // end with EIO
  std::atomic<bool> read_only = false;      // all that would change such a file, or make one, ends with EROFS
  std::atomic<uint32_t> shortened = 0;      // of writes: write a part of what they were given
  std::atomic<int64_t> clock_ahead_ns = 0;  // of what time it is; not of how much time passes
  std::atomic<int64_t> failed = 0;          // so many did
  std::atomic<int64_t> cut = 0;
  std::atomic<int64_t> refused = 0;  // for want of a disk that may be written to
  std::atomic<int64_t> misled = 0;   // so often it was asked what time it is, while it was not
  char folder[4096] = {};
};
static_assert(std::atomic<int64_t>::is_always_lock_free);

inline constexpr const char* kFaultsVariable = "RIDGELINE_FAULTS";

}  // namespace ridgeline::testing
