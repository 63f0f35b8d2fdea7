#include "launch/watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr int64_t kForeverNs = std::numeric_limits<int64_t>::max();
constexpr int64_t kMinLookNs = 1'000'000;
constexpr int64_t kMaxLookNs = 100'000'000;
// Faster than page faults of one process fill memory.
constexpr double kGrowthBytesPerNs = 16;

// Resident bytes of one process; 0 where it is gone.
int64_t ResidentBytes(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/statm");
  int64_t size_pages = 0;
  int64_t resident_pages = 0;
  in >> size_pages >> resident_pages;
  return in ? resident_pages * ::sysconf(_SC_PAGESIZE) : 0;
}

// A process's end, as something to poll.
class PidFd {
 public:
  explicit PidFd(pid_t pid) : fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
    if (fd_ < 0) ThrowErrno("cannot watch process " + std::to_string(pid));
  }
  PidFd(const PidFd&) = delete;
  PidFd& operator=(const PidFd&) = delete;
  ~PidFd() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

struct Ready {
  bool ended = false;
  bool told = false;
};

Ready WaitAtMost(int64_t wait_ns, int pid_fd, int stop_fd) {
  std::array<pollfd, 2> fds = {pollfd{pid_fd, POLLIN, 0}, pollfd{stop_fd, POLLIN, 0}};
  const int64_t bounded_ns = std::max<int64_t>(wait_ns, 0);
  const timespec timeout{bounded_ns / 1'000'000'000, bounded_ns % 1'000'000'000};
  ::ppoll(fds.data(), fds.size(), wait_ns == kForeverNs ? nullptr : &timeout, nullptr);
  return {fds[0].revents != 0, fds[1].revents != 0};
}

// The number after `name` in "name value" lines; -1 where it is not there.
int64_t Counter(const std::filesystem::path& file, const std::string& name) {
  std::ifstream in(file);
  std::string key;
  for (int64_t value = 0; in >> key >> value;) {
    if (key == name) return value;
  }
  return -1;
}

std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  std::ifstream in("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  for (pid_t pid = 0; in >> pid;) children.push_back(pid);
  return children;
}

}  // namespace

int64_t NextLookNs(int64_t headroom_bytes) {
  const auto soonest = static_cast<int64_t>(static_cast<double>(headroom_bytes) / kGrowthBytesPerNs);
  return std::clamp(soonest, kMinLookNs, kMaxLookNs);
}

Watched Watch(Child& child, const WatchLimits& limits, StopWatcher& stop, const Clock& clock) {
  const PidFd pid_fd(child.pid());
  Watched watched;
  int64_t end_ns = limits.time_ns > 0 ? clock.MonotonicNs() + limits.time_ns : kForeverNs;
  for (;;) {
    int64_t wait_ns = end_ns == kForeverNs ? kForeverNs : end_ns - clock.MonotonicNs();
    if (limits.memory_bytes > 0) {
      const int64_t rss_bytes = ResidentBytes(child.pid());
      if (rss_bytes > limits.memory_bytes) {
        watched.stopped = StopReason::kMemoryLimit;
        watched.rss_bytes = rss_bytes;
        break;
      }
      wait_ns = std::min(wait_ns, NextLookNs(limits.memory_bytes - rss_bytes));
    }
    const Ready ready = WaitAtMost(wait_ns, pid_fd.get(), stop.fd());
    if (ready.ended) break;
    const StopReason told = ready.told ? stop.Reason() : StopReason::kNone;
    if (told == StopReason::kTold) {
      watched.stopped = told;
      break;
    }
    if (told == StopReason::kPreempted && watched.stopped != told) {
      watched.stopped = told;
      child.SignalGroup(SIGTERM);
      end_ns = std::min(end_ns, clock.MonotonicNs() + limits.save_ns);
    }
    if (clock.MonotonicNs() >= end_ns) {
      if (watched.stopped == StopReason::kNone) watched.stopped = StopReason::kTimeLimit;
      break;
    }
  }
  if (watched.stopped == StopReason::kTimeLimit || watched.stopped == StopReason::kTold) {
    child.SignalGroup(watched.stopped == StopReason::kTold ? SIGINT : SIGTERM);
    WaitAtMost(limits.grace_ns, pid_fd.get(), -1);
  }
  // Not yet reaped, so the group's number is still its own: this ends the trainer, or what it left behind.
  child.SignalGroup(SIGKILL);
  watched.status = child.Wait();
  // The kernel counts a process's pages in batches, so the peak it gives may be a little less than we saw.
  watched.status.rss_peak_bytes = std::max(watched.status.rss_peak_bytes, watched.rss_bytes);
  return watched;
}

int64_t KernelOomKills() {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("0::/")) continue;
    const int64_t count = Counter("/sys/fs/cgroup" + line.substr(3) + "/memory.events", "oom_kill");
    if (count >= 0) return count;
  }
  return std::max<int64_t>(Counter("/proc/vmstat", "oom_kill"), 0);
}

void EndAllChildren() {
  for (std::vector<pid_t> children = Children(); !children.empty(); children = Children()) {
    for (const pid_t pid : children) ::kill(pid, SIGKILL);
    for (const pid_t pid : children) ::waitpid(pid, nullptr, 0);
  }
}

}  // namespace ridgeline
