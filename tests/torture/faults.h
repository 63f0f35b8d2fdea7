// The faults that faults.cc currently puts into a program's system calls: shared memory, in a file that
// $RIDGELINE_FAULTS names.
#pragma once

#include <atomic>
#include <cstdint>

namespace ridgeline::testing {

struct Faults {
  // How many of 1000 reads, writes and syncs of a regular file below `folder`:
  std::atomic<uint32_t> failing = 0;        // end with EIO
  std::atomic<bool> read_only = false;      // every change or creation of such a file ends with EROFS
  std::atomic<uint32_t> shortened = 0;      // of writes: write only a part of the data
  std::atomic<uint32_t> not_starting = 0;   // of 1000 starts of a process or thread: end with EAGAIN
  std::atomic<int64_t> clock_ahead_ns = 0;  // of the wall clock, not of elapsed time
  std::atomic<int64_t> failed = 0;          // number of calls that failed
  std::atomic<int64_t> cut = 0;
  std::atomic<int64_t> refused = 0;    // because the disk is read-only
  std::atomic<int64_t> unstarted = 0;  // number of processes and threads that did not start
  std::atomic<int64_t> misled = 0;     // number of wrong answers about the time
  char folder[4096] = {};
};
static_assert(std::atomic<int64_t>::is_always_lock_free);

inline constexpr const char* kFaultsVariable = "RIDGELINE_FAULTS";

}  // namespace ridgeline::testing
