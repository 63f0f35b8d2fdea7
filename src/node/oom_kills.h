// Counts processes that the kernel killed because memory ran out.
#pragma once

#include <cstdint>
#include <filesystem>

namespace ridgeline::node {

struct OomKills {
  int64_t count = 0;
  // True if only our processes are counted: our cgroup holds only this process, those that started it and those that it
  // starts. Otherwise a kill may have been another job's.
  bool ours_alone = false;
};

// Counts from now on. The kernel counts a kill for the cgroup of the killed process, whichever limit was reached, even
// the machine's. So only our own cgroup's count is read (v2 memory.events, v1 memory.oom_control). If there is none,
// the machine's counts. `root` is "/" except in tests.
class OomWatch {
 public:
  explicit OomWatch(std::filesystem::path root = "/");
  // Call this when the processes that may have been killed have ended.
  OomKills Since() const;

 private:
  struct Counted {
    int64_t kills = 0;
    bool ours_alone = false;
  };
  Counted Count() const;

  std::filesystem::path root_;
  Counted before_;
};

}  // namespace ridgeline::node
