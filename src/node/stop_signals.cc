#include "node/stop_signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

#include "base/error.h"

namespace ridgeline::node {

namespace fs = std::filesystem;

StopSignals::StopSignals(fs::path cancel_file) : cancel_file_(std::move(cancel_file)) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  fd_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) ThrowErrno("cannot watch for signals");
}

StopSignals::~StopSignals() { ::close(fd_); }

StopReason StopSignals::Reason() {
  signalfd_siginfo info{};
  while (::read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    told_ = true;
    interrupted_ = interrupted_ || info.ssi_signo == SIGINT;
  }
  if (!told_) return StopReason::kNone;
  std::error_code ec;
  return interrupted_ || fs::exists(cancel_file_, ec) ? StopReason::kTold : StopReason::kPreempted;
}

}  // namespace ridgeline::node
