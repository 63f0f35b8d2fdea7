// Sends and receives that are begun on the thread on which Gloo goes on with them, so that nobody else touches a
// connection.
//
// Gloo's thread does not sleep while another has a connection's lock: it asks epoll again and again until it gets it.
// Where both share a core, bytes that come while some are written make it take the core from who has the lock, and keep
// it for what is left of its turn: up to a tick of the scheduler (4 ms) each time, which was two thirds of a small
// step of two ranks.
#pragma once

#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/loop.h>
#include <gloo/transport/unbound_buffer.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/comm/gloo/wire.h"

namespace ridgeline {

class GlooThread final : private ::gloo::transport::tcp::Handler {
 public:
  // Where one cannot be begun, `failed` is told why, on that thread, and nothing is begun any more.
  GlooThread(std::shared_ptr<::gloo::transport::tcp::Device> device, std::function<void(const std::string&)> failed);
  ~GlooThread();  // NOLINT(*-use-override), for the sake of what follows
  GlooThread(const GlooThread&) = delete;
  GlooThread& operator=(const GlooThread&) = delete;

  // `bytes` of a buffer, from `offset` on, to or from a peer. Begun in the order in which they are asked for, and ended
  // as the buffer's waitSend and waitRecv say. The buffer must live until Settle returns.
  struct Transfer {
    ::gloo::transport::UnboundBuffer* buffer = nullptr;
    int peer = 0;
    int64_t slot = 0;
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  void Send(const Transfer& transfer) { Ask({transfer, true}); }
  void Receive(const Transfer& transfer) { Ask({transfer, false}); }
  // Until all that were asked for are begun, or given up.
  void Settle();

 private:
  struct Asked {
    Transfer transfer;
    bool sends = false;
  };
  void Ask(const Asked& asked);
  // The one or the other is Gloo's: its Handler has been given the loop, too, since Debian 12.
  void handleEvents(int /*events*/) { BeginAll(); }                                          // NOLINT(*-use-override)
  void handleEvents(::gloo::transport::tcp::Loop& /*loop*/, int /*events*/) { BeginAll(); }  // NOLINT(*-use-override)
  void BeginAll();
  void Begin(const Asked& asked);

  const std::shared_ptr<::gloo::transport::tcp::Device> device_;
  const std::function<void(const std::string&)> failed_;
  Socket event_;  // wakes the thread
  std::mutex mutex_;
  std::condition_variable settled_;
  std::vector<Asked> asked_;
  bool begins_ = false;           // the thread is at some that were asked for
  std::vector<Asked> beginning_;  // the thread's, as what follows
  bool gave_up_ = false;
};

}  // namespace ridgeline
