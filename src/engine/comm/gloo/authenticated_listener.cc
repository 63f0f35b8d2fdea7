#include "engine/comm/gloo/authenticated_listener.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"

namespace ridgeline::engine {
namespace {

constexpr int64_t kLookAgainNs = 100'000'000;

int64_t NowNs() { return SystemClock().MonotonicNs(); }

}  // namespace

AuthenticatedListener::AuthenticatedListener(Socket listener, Terms terms, int64_t expected)
    : terms_(std::move(terms)),
      listener_(std::move(listener)),
      most_callers_(kMostStrangers + static_cast<size_t>(expected)) {}

// poll() ignores descriptors below zero.
int64_t AuthenticatedListener::Watch(std::vector<pollfd>& fds) const {
  const int64_t now_ns = NowNs();
  const bool shut = now_ns < shut_until_ns_;
  fds.push_back({shut ? -1 : listener_.fd(), POLLIN, 0});
  for (const Caller& caller : callers_) fds.push_back({shut ? -1 : caller.socket.fd(), POLLIN, 0});
  if (shut) return shut_until_ns_ - now_ns;
  return callers_.empty() ? kHandshakeNs : std::max<int64_t>(callers_.front().until_ns - now_ns, 0);
}

std::vector<Socket> AuthenticatedListener::Serve(const pollfd* fds) {
  const int64_t now_ns = NowNs();
  const int64_t refused_before = refused_;
  std::vector<Socket> proved;
  // Returns whether the handshake goes on.
  const auto goes_on = [&](Caller& caller) {
    const Answer::State state = caller.answer.GoOn(caller.socket, terms_);
    if (state == Answer::State::kProved) proved.push_back(std::move(caller.socket));
    if (state == Answer::State::kRefused) ++refused_;
    return state == Answer::State::kGoesOn;
  };
  const pollfd* of_caller = fds + 1;
  for (Caller& caller : std::exchange(callers_, {})) {
    const bool came = (of_caller++)->revents != 0;
    if (!came && now_ns >= caller.until_ns) {
      ++refused_;
    } else if (!came || goes_on(caller)) {
      callers_.push_back(std::move(caller));
    }
  }
  for (int i = 0; fds->revents != 0 && i < kAcceptsAtOnce; ++i) {
    Caller caller{Accept(listener_), {}, now_ns + kHandshakeNs};
    if (!caller.socket) {
      // Descriptors or memory have run out. The waiting caller would wake us again at once.
      const bool nobody = errno == EAGAIN || errno == EWOULDBLOCK || errno == ECONNABORTED || errno == EINTR;
      if (!nobody) shut_until_ns_ = now_ns + kPauseNs;
      break;
    }
    // A caller that belongs here has already spoken.
    if (!goes_on(caller)) continue;
    if (callers_.size() == most_callers_) {
      callers_.pop_front();
      ++refused_;
    }
    callers_.push_back(std::move(caller));
  }
  if (refused_ > refused_before) shut_until_ns_ = now_ns + kPauseNs;
  return proved;
}

Socket AuthenticatedListener::Await(const std::function<bool()>& gives_up) {
  std::vector<pollfd> fds;
  while (!gives_up()) {
    fds.clear();
    const int64_t wait_ns = std::min(Watch(fds), kLookAgainNs);
    const timespec wait{wait_ns / 1'000'000'000, wait_ns % 1'000'000'000};
    ::ppoll(fds.data(), fds.size(), &wait, nullptr);
    if (std::vector<Socket> proved = Serve(fds.data()); !proved.empty()) return std::move(proved.front());
  }
  return Socket();
}

}  // namespace ridgeline::engine
