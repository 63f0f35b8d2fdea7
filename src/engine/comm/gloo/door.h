// A port behind which only those get who know the job's secret.
//
// Anybody may connect to it. What a stranger does there costs little and changes nothing: before he has proved himself
// (handshake.h) not a byte is kept beyond the handshake's, he is held for kHandshakeNs at most, and no more than
// kMostStrangers at once beside those who are expected: of more the oldest is let go. Whoever is let go is counted.
// While there are such, only so many are looked at in so long (kAcceptsAtOnce, kPauseNs) that they can't keep a core
// busy.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "engine/comm/gloo/handshake.h"
#include "engine/comm/gloo/wire.h"

namespace ridgeline {

class Door {
 public:
  static constexpr size_t kMostStrangers = 128;
  static constexpr int kAcceptsAtOnce = 32;
  static constexpr int64_t kPauseNs = 10'000'000;

  // `listener`: of Listen(). So many are expected to come.
  Door(Socket listener, Terms terms, int64_t expected);

  const Terms& terms() const { return terms_; }
  // Callers that have not proved that they know the secret.
  int64_t refused() const { return refused_; }

  // Adds what is to be polled for, and returns how long at most.
  int64_t Watch(std::vector<pollfd>& fds) const;
  // `fds`: from the first that Watch added. Those who have proved themselves, to talk with.
  std::vector<Socket> Serve(const pollfd* fds);

  // Waits for one; nothing where `gives_up` says so before. It is asked every tenth of a second.
  Socket Await(const std::function<bool()>& gives_up);

 private:
  struct Caller {
    Socket socket;
    Answer answer;
    int64_t until_ns = 0;
  };

  Terms terms_;
  Socket listener_;
  size_t most_callers_;
  std::deque<Caller> callers_;  // the oldest first
  int64_t shut_until_ns_ = 0;
  int64_t refused_ = 0;
};

}  // namespace ridgeline
