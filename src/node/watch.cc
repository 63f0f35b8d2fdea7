#include "node/watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "node/process_tree.h"

namespace ridgeline::node {
namespace {

constexpr int64_t kForeverNs = std::numeric_limits<int64_t>::max();
constexpr int64_t kMinLookNs = 1'000'000;
constexpr int64_t kMaxLookNs = 100'000'000;
constexpr int kStartedLooks = 10;
constexpr int kStartedLookMs = 100;
constexpr int64_t kLookPauseNs = 1'000'000'000;  // between looks
constexpr int kShellsKilled = 128 + SIGKILL;     // how a shell, or a program like it, reports that its child was killed
constexpr int64_t kToldTooNs = 500'000'000;      // we may be told this long after the trainer was
constexpr int64_t kKilledTooNs = 2'000'000'000;  // we may be killed this long after its process, on a busy node
constexpr int64_t kStepEndsNs = 10'000'000'000;  // time for the waiting program to end, once it is killed
// Faster than a process can fill memory through page faults.
constexpr double kGrowthBytesPerNs = 16;

// Makes a process's end pollable.
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

class Watcher {
 public:
  Watcher(std::span<Child> children, const WatchLimits& limits, StopWatcher& stop, const Clock& clock,
          const std::function<bool()>& begun, const std::function<StopReason()>& look)
      : children_(children),
        limits_(limits),
        stop_(stop),
        clock_(clock),
        begun_(begun),
        look_(look),
        ended_(children.size()) {
    for (const Child& child : children) pid_fds_.emplace_back(child.pid());
    watched_.began = limits.meet_ns == 0;
    const int64_t limit_ns = watched_.began ? limits.time_ns : limits.meet_ns;
    if (limit_ns > 0) end_ns_ = clock.MonotonicNs() + limit_ns;
  }

  Watched Run() {
    while (running() > 0 && (watched_.stopped == StopReason::kNone || saving()) && Look()) {
    }
    const bool has_ended = watched_.stopped == StopReason::kNone || watched_.stopped == StopReason::kMemoryLimit ||
                           watched_.stopped == StopReason::kPreempted;
    if (!has_ended) {
      SignalAll(watched_.stopped == StopReason::kTold ? SIGINT : SIGTERM);
      const int64_t grace_end_ns = clock_.MonotonicNs() + limits_.grace_ns;
      while (running() > 0 && clock_.MonotonicNs() < grace_end_ns) Wait(grace_end_ns - clock_.MonotonicNs(), -1);
    }
    for (size_t i = 0; i < children_.size(); ++i) End(i, /*by_itself=*/false);
    const int64_t next_ns = NextMayBeUsNs();
    if (next_ns > 0 && watched_.stopped == StopReason::kNone && Wait(next_ns, stop_.fd())) {
      watched_.stopped = stop_.Reason();
    }
    watched_.began = watched_.began || begun_();
    // If one process was killed, the others failed because of that.
    watched_.process = killed_.value_or(failed_.value_or(0));
    watched_.killed = killed_.has_value();
    watched_.status = *ended_[watched_.process];
    for (const auto& status : ended_) {
      watched_.rss_peak_bytes += status->rss_peak_bytes;
      watched_.rank_rss_peak_bytes = std::max(watched_.rank_rss_peak_bytes, status->rss_peak_bytes);
    }
    // The kernel counts a process's pages in batches, so its peaks may be slightly less than what we saw.
    watched_.rss_peak_bytes = std::max(watched_.rss_peak_bytes, watched_.rss_bytes);
    watched_.rank_rss_peak_bytes =
        std::max(watched_.rank_rss_peak_bytes, watched_.rss_bytes / static_cast<int64_t>(ended_.size()));
    return watched_;
  }

 private:
  // Told to leave, with time to save their state.
  bool saving() const { return watched_.stopped == StopReason::kPreempted; }
  // The processes that another program started. If /proc cannot be read now, tries for a second. Then it is as if there
  // were none: the program that waits for them gets the signal, and ends them in its own way.
  std::vector<pid_t> Started() const {
    if (limits_.tree == nullptr) return {};
    auto marked = limits_.tree->Marked();
    for (int look = 0; !marked && look < kStartedLooks; ++look) {
      ::poll(nullptr, 0, kStartedLookMs);
      marked = limits_.tree->Marked();
    }
    return marked.value_or(std::vector<pid_t>());
  }
  // Signals processes that another program started. Returns false if none exist yet.
  bool SignalStarted(int signal) {
    bool any = false;
    for (const pid_t pid : Started()) {
      const pid_t group = ::getpgid(pid);
      const bool waits =
          std::any_of(children_.begin(), children_.end(), [&](const Child& child) { return child.pid() == group; });
      if (!waits) any = ::kill(pid, signal) == 0 || any;
    }
    return any;
  }
  void SignalAll(int signal) {
    if (SignalStarted(signal)) return;
    for (size_t i = 0; i < children_.size(); ++i) {
      if (!ended_[i]) children_[i].SignalGroup(signal);
    }
  }
  size_t running() const { return static_cast<size_t>(std::count(ended_.begin(), ended_.end(), std::nullopt)); }

  static bool WasTold(const ExitStatus& status) {
    return status.signal == SIGTERM || status.signal == SIGINT || status.signal == SIGHUP || status.signal == SIGUSR1;
  }

  // A scheduler tells, or kills, every process of a job, one after another. This is how long to wait in case we are
  // next. If we are killed in that time, the point has no result, as it should.
  int64_t NextMayBeUsNs() const {
    if (killed_) return kKilledTooNs;
    return failed_ && WasTold(*ended_[*failed_]) ? kToldTooNs : 0;
  }

  // Starts the time limit when the processes have begun.
  void LookWhetherItBegan() {
    if (watched_.began || !begun_()) return;
    watched_.began = true;
    if (failed_ || saving()) return;  // another end is awaited
    end_ns_ = limits_.time_ns > 0 ? clock_.MonotonicNs() + limits_.time_ns : kForeverNs;
  }

  // Waits for an event. Returns false if nothing more is worth waiting for.
  bool Look() {
    LookWhetherItBegan();
    int64_t wait_ns = end_ns_ == kForeverNs ? kForeverNs : end_ns_ - clock_.MonotonicNs();
    if (limits_.memory_bytes > 0) {
      const std::optional<int64_t> rss_bytes = HeldBytes();
      if (rss_bytes && *rss_bytes > limits_.memory_bytes) {
        watched_.stopped = StopReason::kMemoryLimit;
        watched_.rss_bytes = *rss_bytes;
        return false;
      }
      const int64_t next_ns =
          rss_bytes ? NextLookNs((limits_.memory_bytes - *rss_bytes) / static_cast<int64_t>(running())) : kMaxLookNs;
      wait_ns = std::min(wait_ns, next_ns);
    }
    if (!watched_.began) wait_ns = std::min(wait_ns, kMaxLookNs);
    if (look_) {
      if (clock_.MonotonicNs() >= next_look_ns_) {
        const StopReason said = look_();
        next_look_ns_ = clock_.MonotonicNs() + kLookPauseNs;
        if (said != StopReason::kNone && !failed_ && !saving()) {
          watched_.stopped = said;
          return false;
        }
      }
      wait_ns = std::min(wait_ns, next_look_ns_ - clock_.MonotonicNs());
    }
    if (others_end_ns_ != kForeverNs) wait_ns = std::min(wait_ns, others_end_ns_ - clock_.MonotonicNs());
    const StopReason told = Wait(wait_ns, stop_.fd()) ? stop_.Reason() : StopReason::kNone;
    if (told == StopReason::kTold) {
      watched_.stopped = told;
    } else if (told == StopReason::kPreempted && !saving()) {
      watched_.stopped = told;
      SignalAll(SIGTERM);
      end_ns_ = std::min(end_ns_, clock_.MonotonicNs() + limits_.save_ns);
    } else if (running() > 0 && !failed_ && !saving() && clock_.MonotonicNs() >= others_end_ns_) {
      watched_.stopped = StopReason::kOthersEnded;
    } else if (running() > 0 && clock_.MonotonicNs() >= end_ns_) {
      if (failed_ || saving()) return false;
      LookWhetherItBegan();
      if (clock_.MonotonicNs() < end_ns_) return true;
      watched_.stopped = watched_.began ? StopReason::kTimeLimit : StopReason::kMeetLimit;
    }
    return true;
  }

  // Nothing if /proc cannot be read now. The limit is then checked at the next look.
  std::optional<int64_t> HeldBytes() const {
    if (limits_.tree != nullptr) return limits_.tree->HeldBytes();
    int64_t bytes = 0;
    for (size_t i = 0; i < children_.size(); ++i) {
      if (ended_[i]) continue;
      const std::optional<Resident> resident = ResidentOf(children_[i].pid());
      if (!resident) return std::nullopt;
      bytes += resident->bytes;
    }
    return bytes;
  }

  // Waits at most `wait_ns`, until a process has ended or we are told to stop. Returns whether we are.
  bool Wait(int64_t wait_ns, int stop_fd) {
    std::vector<pollfd> fds = {{stop_fd, POLLIN, 0}};
    for (size_t i = 0; i < children_.size(); ++i) fds.push_back({ended_[i] ? -1 : pid_fds_[i].get(), POLLIN, 0});
    const int64_t bounded_ns = std::max<int64_t>(wait_ns, 0);
    const timespec timeout{bounded_ns / 1'000'000'000, bounded_ns % 1'000'000'000};
    ::ppoll(fds.data(), fds.size(), wait_ns == kForeverNs ? nullptr : &timeout, nullptr);
    for (size_t i = 0; i < children_.size(); ++i) {
      if (fds[i + 1].revents != 0) End(i, /*by_itself=*/true);
    }
    // Checked even if all have ended: the same sender may have told them, too, before they were groups of their own.
    return fds[0].revents != 0;
  }

  void End(size_t i, bool by_itself) {
    if (ended_[i]) return;
    if (limits_.tree != nullptr && !limits_.tree->mark().empty() && !by_itself) {
      // If it were killed at once, the waiting program could not tell the rest to end, too.
      SignalStarted(SIGKILL);
      children_[i].SignalGroup(SIGTERM);
      ended_[i] = children_[i].WaitFor(kStepEndsNs);
    }
    // It is not yet reaped, so the group's number is still its own. This ends the process, or what it left behind.
    if (!ended_[i]) children_[i].SignalGroup(SIGKILL);
    if (!ended_[i]) ended_[i] = children_[i].Wait();
    const bool killed = ended_[i]->signal == SIGKILL || ended_[i]->exit_code == kShellsKilled;
    if (by_itself && killed && !killed_) killed_ = i;
    if (ended_[i]->ok() && i == 0 && by_itself && limits_.others_ns > 0) {
      others_end_ns_ = clock_.MonotonicNs() + limits_.others_ns;
    }
    if (ended_[i]->ok() || failed_) return;
    failed_ = i;
    end_ns_ = std::min(end_ns_, clock_.MonotonicNs() + limits_.grace_ns);
  }

  std::span<Child> children_;
  const WatchLimits& limits_;
  StopWatcher& stop_;
  const Clock& clock_;
  const std::function<bool()>& begun_;
  const std::function<StopReason()>& look_;
  int64_t next_look_ns_ = 0;
  std::deque<PidFd> pid_fds_;
  std::vector<std::optional<ExitStatus>> ended_;
  std::optional<size_t> failed_;  // the first to fail
  std::optional<size_t> killed_;  // the first that was killed, but not by us
  int64_t end_ns_ = kForeverNs;
  int64_t others_end_ns_ = kForeverNs;
  Watched watched_;
};

}  // namespace

int64_t NextLookNs(int64_t headroom_bytes) {
  const auto soonest = static_cast<int64_t>(static_cast<double>(headroom_bytes) / kGrowthBytesPerNs);
  return std::clamp(soonest, kMinLookNs, kMaxLookNs);
}

Watched Watch(std::span<Child> children, const WatchLimits& limits, StopWatcher& stop, const Clock& clock,
              const std::function<bool()>& begun, const std::function<StopReason()>& look) {
  return Watcher(children, limits, stop, clock, begun, look).Run();
}

}  // namespace ridgeline::node
