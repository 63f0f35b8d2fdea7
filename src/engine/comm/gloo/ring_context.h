// Gloo's context of a ring: connections with the rank before and the rank after, and no others.
//
// The Gloo of Debian 12 (0.0~git20220518) makes connections that anybody can take part in. Each pair listens on a port
// of its own, bound to the address of its device, and takes whoever connects first for its peer: a stranger is sent the
// run's gradients and weights, and a header of his that fits nothing ends the process, since Gloo throws on its own
// thread. It can't be handed a connection either. So the connections are made here, between ranks that have proved to
// each other that they know the job's secret (handshake.h), Gloo connects its pairs with this process alone, over the
// loopback network, and then the descriptors of these are made to mean the others. The port that Gloo opens before it
// can be told whom to connect with is at an address of that network that nobody can guess, for microseconds.
//
// What this does not do: what ranks send each other is neither encrypted nor sealed (handshake.h), and Gloo believes
// every header that comes over these connections. A network whose packets others can change is no place for a run.
#pragma once

#include <gloo/context.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/comm/gloo/gloo_thread.h"
#include "engine/comm/gloo/rendezvous.h"

namespace ridgeline {

class RingContext final : public ::gloo::Context {
 public:
  // `failed` is told, on Gloo's thread, why nothing can be sent or received any more.
  RingContext(int rank, int world, std::chrono::milliseconds timeout, std::function<void(const std::string&)> failed);

  int before() const { return (rank + size - 1) % size; }
  int after() const { return (rank + 1) % size; }

  // Called by every rank; returns when this one is connected. `address`: where others reach this rank, and where it
  // listens for the one before it meanwhile. Throws what ThrowLoss throws, and what Gloo throws.
  void Connect(Rendezvous& rendezvous, const std::string& address);
  // Of a context that is connected.
  GlooThread& thread() { return *thread_; }

  // Connections that were refused here.
  int64_t refused_connections() const { return refused_; }

 private:
  // Makes the pair with `peer`, over this connection.
  void Pair(int peer, const Socket& connection);

  int64_t refused_ = 0;
  const std::function<void(const std::string&)> failed_;
  std::optional<GlooThread> thread_;
};

}  // namespace ridgeline
