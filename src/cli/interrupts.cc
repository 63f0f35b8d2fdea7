#include "cli/interrupts.h"

#include <csignal>
#include <cstddef>
#include <cstdlib>

namespace ridgeline {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

// Global, because a signal handler can reach only global variables.
volatile std::sig_atomic_t count = 0;
volatile std::sig_atomic_t in_a_job = 0;

extern "C" void CountSignal(int signal) {
  const bool leaves = signal == SIGHUP || (signal == SIGTERM && in_a_job != 0);
  count = count + (leaves ? 2 : 1);
}

}  // namespace

Interrupts::Interrupts() {
  count = 0;
  in_a_job = std::getenv("SLURM_JOB_ID") != nullptr ? 1 : 0;
  struct sigaction action {};
  action.sa_handler = CountSignal;  // without SA_RESTART, so that a signal ends a sleep at once
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // Ignored signals stay ignored: that is how nohup keeps a run alive.
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

Interrupts::~Interrupts() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int Interrupts::Count() { return count; }

}  // namespace ridgeline
