// Processes that the kernel killed because memory ran out.
#pragma once

#include <cstdint>
#include <filesystem>

namespace ridgeline {

struct OomKills {
  int64_t count = 0;
  // Nobody else's processes are counted: nothing but this process, those that started it and those that it starts is in
  // its cgroup. Else a kill may have been another job's.
  bool ours_alone = false;
};

// Counts from now on. The kernel counts a kill for the cgroup of whom it kills, whoever's limit was reached, the
// machine's included: so our own cgroup's count (v2 memory.events, v1 memory.oom_control) is all that is asked. Only
// where there is none, the machine's counts. `root` is "/" but in tests.
class OomWatch {
 public:
  explicit OomWatch(std::filesystem::path root = "/");
  // To be asked when the processes that may have been killed have ended.
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

}  // namespace ridgeline
