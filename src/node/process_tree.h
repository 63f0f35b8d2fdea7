// The processes below ours, and the memory they hold.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace ridgeline {

// Of all threads of it.
std::vector<pid_t> ChildrenOf(pid_t pid);

// Everything that descends from this process: as orphans become ours (PR_SET_CHILD_SUBREAPER), whatever a trainer has
// started and left.
std::vector<pid_t> Descendants();

struct Resident {
  int64_t bytes = 0;
  int64_t shared_bytes = 0;  // of these: files and shared memory, which others may hold, too
};
Resident ResidentOf(pid_t pid);  // 0 where it is gone

// What all descendants hold together, about: what is shared counts once. Quick, and stops none of them.
int64_t HeldByTree();

// What they hold together, exactly: the sum of their proportional set sizes (Pss of smaps_rollup), in which what n
// processes share counts a n-th in each. 0 where the kernel does not say. Takes the longer the more they hold.
int64_t ProportionalOfTree();

// Bytes that they have written by now, wherever to; fewer once one of them has ended.
int64_t WrittenByTree();

}  // namespace ridgeline
