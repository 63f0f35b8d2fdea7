// A rank's end of the meeting place: exchanges texts with the other ranks, says that it is alive, and learns which rank
// is lost.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine/comm/gloo/meeting_place.h"
#include "engine/comm/gloo/rank_environment.h"
#include "engine/comm/gloo/wire.h"
#include "engine/comm/mesh.h"

namespace ridgeline::engine {

class Rendezvous {
 public:
  // Rank 0 opens the meeting place. The others wait until it is open, and until their secret exists and is rank 0's: an
  // earlier attempt at the job may have left another. `on_lost` is called once, on another thread, when a rank is lost.
  // Throws Error(kInfrastructure), or Error(kInvalidInput) if a secret is needed and there is none.
  Rendezvous(const RankEnvironment& place, std::function<void()> on_lost)
      : Rendezvous(place, Mesh({.shard = place.world}), std::move(on_lost)) {}
  // `mesh`: whose groups the ranks form; the same on every rank.
  Rendezvous(const RankEnvironment& place, const Mesh& mesh, std::function<void()> on_lost);
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  // Waits until every rank has come here, unless one is lost, so that no peer goes while it is needed.
  ~Rendezvous();

  // Returns every rank's text, in rank order. Every rank calls it, in the same order. Throws what ThrowLoss throws.
  std::vector<std::string> Exchange(std::string_view mine);

  // Says that this rank has entered so many more collectives of its group in this grouping: a place in
  // Mesh::Groupings.
  void Enter(size_t grouping, int64_t collectives) {
    entered_[grouping].fetch_add(collectives, std::memory_order_relaxed);
  }

  // Says that this rank must end, and why. Every rank is told, this one included, unless one is lost already.
  void Abandon(const Error& why) noexcept;

  // The secret with which this rank came in.
  const Secret& secret() const { return secret_; }
  // The number of connections that rank 0 refused; 0 elsewhere.
  int64_t refused_connections() const { return meeting_place_ == nullptr ? 0 : meeting_place_->refused(); }

  // Why the run is over; nothing while no rank is lost.
  std::optional<Error> Loss() const;
  bool lost() const { return Loss().has_value(); }
  // Throws why the run is over, for callers that see a connection fail. Waits a moment for the answer, and throws
  // `otherwise` if none comes.
  [[noreturn]] void ThrowLoss(const std::string& otherwise);

  // This rank's address on the network, and rank 0's address as this rank reaches it.
  std::string local_address() const { return LocalAddress(socket_); }
  std::string first_address() const { return PeerAddress(socket_); }

 private:
  void Join();
  void Listen();
  void Take(const Message& message);
  void Lose(const Error& why);
  void Tell(MessageKind kind, std::string_view body);
  std::string First() const;

  RankEnvironment place_;
  std::function<void()> on_lost_;
  std::unique_ptr<MeetingPlace> meeting_place_;  // rank 0 only
  Secret secret_;
  Socket socket_;
  Socket stop_;
  MessageReader reader_;
  std::vector<std::atomic<int64_t>> entered_;  // by grouping
  std::mutex send_mutex_;
  mutable std::mutex mutex_;  // of the members below
  std::condition_variable changed_;
  std::optional<std::string> exchanged_;
  std::optional<Error> why_lost_;
  bool everyone_left_ = false;
  std::thread thread_;
};

}  // namespace ridgeline::engine
