// The processes below ours, and the memory they hold.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ridgeline {

// Of all threads of it.
std::vector<pid_t> ChildrenOf(pid_t pid);

// Everything that descends from this process: as orphans become ours (PR_SET_CHILD_SUBREAPER), whatever a trainer has
// started and left. And what is marked.
std::vector<pid_t> Descendants();

// Where another starts a trainer for us, as Slurm does, it descends from that one. From now on, whatever has the
// variable `name` of this value in its environment, and what descends from it, counts as ours.
void CountMarked(const std::string& name, const std::string& value);
// Those that have it now, none where nothing is marked. Not what they started without it.
std::vector<pid_t> Marked();
// Looks through /proc for them, unless that was done a moment ago: Descendants does it where nobody else has.
void LookForMarked();
// Kills them, and waits a while until they are gone: nobody reaps them for us.
void EndMarked();

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
