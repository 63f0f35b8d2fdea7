// Communication between ranks. A run has `world` ranks; each trains on its own rows of the batch.
//
//   self     one rank: nothing to move
//   virtual  rank 0 of `world` in one process, with that rank's shapes and memory; no bytes move between ranks, and
//            the data of the others is taken to be equal to this rank's
//   gloo     processes, on one machine or several (gloo_communicator.h)
//
// Every rank calls the same collectives in the same order, one at a time; they block. If a rank is gone, hangs, or has
// abandoned the run, a collective throws an Error that names it. Afterwards the communicator cannot be used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ridgeline {

enum class Reduction : uint8_t { kSum, kMax };

class Communicator {
 public:
  Communicator(int64_t rank, int64_t world) : rank_(rank), world_(world) {}
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual std::string_view name() const = 0;  // "self", "virtual", "gloo"
  int64_t rank() const { return rank_; }
  int64_t world() const { return world_; }
  // The number of ranks that share this machine's memory, this one included.
  virtual int64_t ranks_here() const { return 1; }
  // The number of connections to this rank whose sender did not prove that it knows the job's secret.
  virtual int64_t refused_connections() const { return 0; }

  // full: world x bytes, filled with every rank's `bytes` in rank order. `mine` is this rank's and may lie in its own
  // place in full.
  virtual void AllGather(const std::byte* mine, std::byte* full, int64_t bytes) = 0;

  // full: world parts of `elements`. This rank's part becomes the mean of the ranks' values for it, summed in fp32. The
  // contents of the other parts are lost.
  virtual void ReduceScatterMean(float* full, int64_t elements) = 0;

  // values = their sum or maximum over the ranks: the same bits on every rank, since each adds in rank order. For only
  // a few values.
  void AllReduce(std::span<double> values, Reduction reduction);
  void AllReduce(std::span<int64_t> values, Reduction reduction);
  void AllReduce(std::span<float> values, Reduction reduction);

  // Returns when every rank has called it.
  void Barrier();

  // Tells the other ranks that this one ends, and why. Their next collective throws an Error of the same kind that
  // names this rank.
  virtual void Abandon(const Error& /*why*/) noexcept {}

  // For devices that communicate by themselves while this communicator watches their ranks. May be called at any time,
  // on any thread. Enter: this rank entered so many more collectives. A rank that has entered fewer than others for too
  // long is lost. Loss: why the run is over, if a rank is lost. timeout_s: how long a rank may keep the others waiting.
  virtual void Enter(int64_t /*collectives*/) {}
  virtual std::optional<Error> Loss() const { return std::nullopt; }
  virtual double timeout_s() const { return 300; }

 private:
  int64_t rank_;
  int64_t world_;
};

std::unique_ptr<Communicator> MakeSelfCommunicator();
std::unique_ptr<Communicator> MakeVirtualCommunicator(int64_t world);

}  // namespace ridgeline
