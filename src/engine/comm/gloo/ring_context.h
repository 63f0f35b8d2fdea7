// Gloo's context for a ring: connections with the rank before and the rank after, and no others.
//
// The Gloo of Debian 12 (0.0~git20220518) makes connections that anybody can take part in. Each pair listens on a port
// of its own, bound to the address of its device, and takes whoever connects first for its peer. So a stranger would be
// sent the run's gradients and weights. A header of his that fits nothing would end the process, since Gloo throws on
// its own thread. It cannot be handed a connection either. So the connections are made here, between ranks that have
// proved to each other that they know the job's secret (handshake.h). Gloo connects its pairs only with this process,
// over the loopback network, and then their descriptors are replaced by the real connections. Gloo opens a port before
// it can be told with whom to connect. That port is open for microseconds, at an address of the loopback network that
// nobody can guess.
//
// Traffic between ranks is neither encrypted nor sealed (handshake.h), and Gloo believes every header that comes over
// these connections. Do not run on a network whose packets others can change.
#pragma once

#include <gloo/context.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/comm/gloo/gloo_thread.h"
#include "engine/comm/gloo/rendezvous.h"
#include "engine/comm/mesh.h"

namespace ridgeline::engine {

class RingContext final : public ::gloo::Context {
 public:
  // `failed` is told, on Gloo's thread, why nothing can be sent or received any more.
  RingContext(int rank, int world, std::chrono::milliseconds timeout, std::function<void(const std::string&)> failed);

  // Called by every rank; returns when this one is connected with its neighbours in every ring of the mesh. `address`:
  // where others reach this rank, and where it listens meanwhile for neighbours of lower ranks. Throws what ThrowLoss
  // throws, and what Gloo throws.
  void Connect(Rendezvous& rendezvous, const std::string& address, const Mesh& mesh);
  // REQUIRES: the context is connected.
  GlooThread& thread() { return *thread_; }

  // The number of connections refused here.
  int64_t refused_connections() const { return refused_; }

 private:
  // Makes the pair with `peer`, over this connection.
  void Pair(int peer, const Socket& connection);

  int64_t refused_ = 0;
  const std::function<void(const std::string&)> failed_;
  std::optional<GlooThread> thread_;
};

}  // namespace ridgeline::engine
