// The processes below ours, and the memory they hold.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ridgeline {

// Of all threads of it.
std::vector<pid_t> ChildrenOf(pid_t pid);

struct Resident {
  int64_t bytes = 0;
  int64_t shared_bytes = 0;  // of these: files and shared memory, which others may hold, too
};
Resident ResidentOf(pid_t pid);  // 0 where it is gone

// A variable of those that another starts for us, by whose value we know them.
inline constexpr const char* kMarkVariable = "RIDGELINE_MARK";

// Everything that descends from this process: as orphans become ours (PR_SET_CHILD_SUBREAPER), whatever a trainer has
// started and left. Where another starts a trainer for us, as Slurm does, it descends from that one. Then a tree has a
// mark: whatever has it in kMarkVariable is of the tree, with what descends from it.
class ProcessTree {
 public:
  ProcessTree() = default;
  // `mark`: the value of kMarkVariable, nobody else's on this node.
  explicit ProcessTree(std::string mark) : mark_(std::move(mark)) {}

  const std::string& mark() const { return mark_; }  // empty: none

  std::vector<pid_t> All();
  // Those that have the mark now; not what they started without it.
  std::vector<pid_t> Marked() const;
  // Looks through /proc for those, unless that was done a moment ago: All does it where nobody else has.
  void LookForMarked();

  // What all of it holds together, about: what is shared counts once. Quick, and stops none of them.
  int64_t HeldBytes();
  // What it holds together, exactly: the sum of the proportional set sizes (Pss of smaps_rollup), in which what n
  // processes share counts a n-th in each. 0 where the kernel does not say. Takes the longer the more they hold.
  int64_t ProportionalBytes();
  // Bytes that it has written by now, wherever to; fewer once a process of it has ended.
  int64_t WrittenBytes();

  // Processor time that it has used by now; less once a process of it has ended.
  int64_t UsedNs();

  // Kills all of it, reaps every child this process has, and those that thereby become its children, and waits a while
  // for the marked ones to be gone, which nobody reaps for us.
  void End();

 private:
  void EndMarked() const;

  std::string mark_;
  std::vector<pid_t> marked_lately_;
  int64_t next_scan_ns_ = 0;
};

}  // namespace ridgeline
