// A port that lets in only those who know the job's secret.
//
// Anybody may connect to it. A stranger's connection costs little and changes nothing. Before callers have proved
// themselves (handshake.h), no byte beyond the handshake's is kept, and each is held for at most kHandshakeNs. At most
// kMostStrangers are held in addition to the expected callers; beyond that, the oldest is dropped. Dropped callers are
// counted. While there are any, the listener looks at only so many callers in so much time (kAcceptsAtOnce, kPauseNs)
// that they cannot keep a core busy.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "engine/comm/gloo/handshake.h"
#include "engine/comm/gloo/wire.h"

namespace ridgeline::engine {

class AuthenticatedListener {
 public:
  static constexpr size_t kMostStrangers = 128;
  static constexpr int kAcceptsAtOnce = 32;
  static constexpr int64_t kPauseNs = 10'000'000;

  // `listener`: from Listen(). `expected`: how many callers should come.
  AuthenticatedListener(Socket listener, Terms terms, int64_t expected);

  const Terms& terms() const { return terms_; }
  // The number of callers that have not proved that they know the secret.
  int64_t refused() const { return refused_; }

  // Adds the descriptors to poll for, and returns how long to poll at most, in nanoseconds.
  int64_t Watch(std::vector<pollfd>& fds) const;
  // `fds`: from the first one that Watch added. Returns the connections that have proved themselves.
  std::vector<Socket> Serve(const pollfd* fds);

  // Waits for one connection. `gives_up` is asked every tenth of a second; if it says yes first, returns nothing.
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

}  // namespace ridgeline::engine
