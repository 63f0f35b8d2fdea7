// The processes below ours, and the memory they hold.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ridgeline::node {

struct Resident {
  int64_t bytes = 0;
  int64_t shared_bytes = 0;  // part of these: files and shared memory, which other processes may hold, too
};
// 0 if the process is gone; nothing if /proc cannot be read now.
std::optional<Resident> ResidentOf(pid_t pid);

// A variable that marks processes that another program starts for us.
inline constexpr const char* kMarkVariable = "RIDGELINE_MARK";

// All descendants of this process. Orphans become ours (PR_SET_CHILD_SUBREAPER), so this includes everything that a
// trainer started and left. If another program starts a trainer for us, as Slurm does, the trainer descends from that.
// Then a tree has a mark, and also includes all processes with that mark in kMarkVariable, and their descendants.
//
// A function returns nothing if /proc cannot be read now, for example because too many files are open: a list that
// could not be read must not look empty.
class ProcessTree {
 public:
  ProcessTree() = default;
  // `mark`: the value of kMarkVariable, unique on this node.
  explicit ProcessTree(std::string mark) : mark_(std::move(mark)) {}

  const std::string& mark() const { return mark_; }  // empty: none

  std::optional<std::vector<pid_t>> All();
  // The processes that have the mark now, without those that they started without it.
  std::optional<std::vector<pid_t>> Marked() const;
  // Searches /proc for marked processes, unless that was done a moment ago. All does it if nobody else has. If /proc
  // cannot be read, All goes on with those that were found before.
  void LookForMarked();

  // The approximate memory that all of it holds together. Shared memory counts once. Quick, and stops no process.
  std::optional<int64_t> HeldBytes();
  // The exact memory that it holds together: the sum of the proportional set sizes (Pss of smaps_rollup), in which each
  // of n processes counts an n-th of what they share. 0 if the kernel does not report it. Takes longer the more they
  // hold.
  std::optional<int64_t> ProportionalBytes();
  // Bytes that it has written to any file so far. Falls when one of its processes ends.
  std::optional<int64_t> WrittenBytes();

  // Processor time that it has used so far. Falls when one of its processes ends.
  std::optional<int64_t> UsedNs();

  // Kills all of it. Reaps every child of this process, and those that thereby become its children. Waits a while for
  // the marked processes, which we cannot reap, to be gone. Waits as long for /proc to be readable, and returns false
  // if it is not: then some of it may still run. Never throws.
  bool End();

 private:
  bool EndMarked() const;

  std::string mark_;
  std::vector<pid_t> marked_lately_;
  int64_t next_scan_ns_ = 0;
};

}  // namespace ridgeline::node
