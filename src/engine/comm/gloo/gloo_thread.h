// Starts sends and receives on the thread on which Gloo continues them, so that no other thread touches a connection.
//
// Gloo's thread does not sleep while another thread holds a connection's lock: it asks epoll again and again until it
// gets the lock. If both share a core, bytes that arrive during a write make it take the core from the lock's holder.
// It keeps the core for the rest of its time slice, up to a tick of the scheduler (4 ms) each time. That was two thirds
// of a small step of two ranks.
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

namespace ridgeline::engine {

class GlooThread final : private ::gloo::transport::tcp::Handler {
 public:
  // `failed` is called on that thread with the reason if a transfer cannot be started. Then no more are started.
  GlooThread(std::shared_ptr<::gloo::transport::tcp::Device> device, std::function<void(const std::string&)> failed);
  ~GlooThread();  // NOLINT(*-use-override), for the sake of what follows
  GlooThread(const GlooThread&) = delete;
  GlooThread& operator=(const GlooThread&) = delete;

  // `bytes` of a buffer, from `offset` on, to or from a peer. Transfers start in the order in which they are asked for,
  // and end as the buffer's waitSend and waitRecv say. The buffer must live until Settle returns.
  struct Transfer {
    ::gloo::transport::UnboundBuffer* buffer = nullptr;
    int peer = 0;
    int64_t slot = 0;
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  void Send(const Transfer& transfer) { Ask({transfer, true}); }
  void Receive(const Transfer& transfer) { Ask({transfer, false}); }
  // Waits until all transfers that were asked for have started or failed.
  void Settle();

 private:
  struct Asked {
    Transfer transfer;
    bool sends = false;
  };
  void Ask(const Asked& asked);
  // Gloo calls one or the other: since Debian 12, its Handler also gets the loop.
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
  bool begins_ = false;           // the thread is starting some
  std::vector<Asked> beginning_;  // this and the members below belong to the thread
  bool gave_up_ = false;
};

}  // namespace ridgeline::engine
