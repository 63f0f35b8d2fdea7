#include "session/interrupts.h"

#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>

namespace ridgeline::session {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr unsigned kLeavesWithinS = 5;

// Global, because a signal handler can reach only global variables.
volatile std::sig_atomic_t count = 0;
volatile std::sig_atomic_t in_a_job = 0;
int living = 0;  // objects

extern "C" void CountSignal(int signal) {
  const bool leaves = signal == SIGHUP || (signal == SIGTERM && in_a_job != 0);
  const bool was_to_leave = count > 1;
  count = count + (leaves ? 2 : 1);
  if (count > 1 && !was_to_leave) ::alarm(kLeavesWithinS);
}

extern "C" void LeaveNow(int) {
  static constexpr char kWhy[] = "\nleft, though a call had not returned: the same command goes on from here\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kWhy, sizeof kWhy - 1);
  ::_exit(kInterruptedExit);
}

}  // namespace

Interrupts::Interrupts() {
  if (living++ == 0) count = 0;
  in_a_job = std::getenv("SLURM_JOB_ID") != nullptr ? 1 : 0;
  struct sigaction action {};
  action.sa_handler = CountSignal;  // without SA_RESTART, so that a signal ends a sleep at once
  sigemptyset(&action.sa_mask);
  struct sigaction leave {};
  leave.sa_handler = LeaveNow;
  sigemptyset(&leave.sa_mask);
  sigaction(SIGALRM, &leave, &before_.back());
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // Ignored signals stay ignored: that is how nohup keeps a run alive.
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

Interrupts::~Interrupts() {
  if (--living == 0) ::alarm(0);
  sigaction(SIGALRM, &before_.back(), nullptr);
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int Interrupts::Count() { return count; }

}  // namespace ridgeline::session
