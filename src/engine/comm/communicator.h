// Communication between ranks. The communicator of a run reaches all its ranks. Those of groups along axes of the run's
// mesh (mesh.h) come from it.
//
//   self     one rank: nothing to move
//   virtual  rank 0 of `world` in one process, with that rank's shapes and memory; no bytes move between ranks, and
//            the data of the others is taken to be equal to this rank's
//   gloo     processes, on one machine or several (gloo_communicator.h)
//
// Every rank of a group calls the same collectives of the group in the same order, one at a time; they block. If a rank
// is gone, hangs, or has abandoned the run, a collective throws an Error that names it. Afterwards the communicator
// cannot be used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "engine/comm/mesh.h"
#include "engine/comm/reduction.h"
#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

class Communicator {
 public:
  Communicator(int64_t rank, const Mesh& mesh) : rank_(rank), mesh_(mesh) {}
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual std::string_view name() const = 0;  // "self", "virtual", "gloo"
  int64_t rank() const { return rank_; }
  int64_t world() const { return mesh_.ranks(); }
  const Mesh& mesh() const { return mesh_; }
  // The communicator of this rank's group along these axes: its `rank` is the place in the group, its `world` the
  // group's number of ranks. It is this one if the group has all ranks, and lives as long as this one. No collectives
  // of two groups may run at once.
  Communicator& Along(MeshAxes axes);
  // The number of ranks that share this machine's memory, this one included.
  virtual int64_t ranks_here() const { return 1; }
  // The number of connections to this rank whose sender did not prove that it knows the job's secret.
  virtual int64_t refused_connections() const { return 0; }

  // full: world x bytes, filled with every rank's `bytes` in rank order. `mine` is this rank's and may lie in its own
  // place in full.
  virtual void AllGather(const std::byte* mine, std::byte* full, int64_t bytes) = 0;

  // full: world parts of `elements`, floating. This rank's part becomes the mean or the sum of the ranks' values for
  // it. Sums are fp32, and are rounded after each addition if full has 16 bits. The contents of the other parts are
  // lost.
  virtual void ReduceScatter(std::byte* full, DType dtype, int64_t elements, Reduction reduction) = 0;
  // values, floating = their mean or sum over the ranks, as ReduceScatter gives it. REQUIRES: as many elements for
  // each rank.
  virtual void AllReduce(std::byte* values, DType dtype, int64_t elements, Reduction reduction);
  void ReduceScatterMean(float* full, int64_t elements) {
    ReduceScatter(reinterpret_cast<std::byte*>(full), DType::kF32, elements, Reduction::kMean);
  }

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
  // on any thread. Enter: this rank entered so many more collectives of the group. A rank that has entered fewer than
  // others of its group for too long is lost. Loss: why the run is over, if a rank is lost. timeout_s: how long a rank
  // may keep the others waiting.
  virtual void Enter(int64_t /*collectives*/) {}
  virtual std::optional<Error> Loss() const { return std::nullopt; }
  virtual double timeout_s() const { return 300; }

 private:
  // Makes the communicator of a smaller group, along axes that form `grouping` (Mesh::Groupings). Throws
  // Error(kInternal) unless overridden.
  virtual std::unique_ptr<Communicator> NewGroup(MeshAxes grouping);

  int64_t rank_;
  Mesh mesh_;
  std::mutex groups_mutex_;
  std::map<std::pair<int64_t, int64_t>, std::unique_ptr<Communicator>> groups_;  // by stride and number of ranks
};

std::unique_ptr<Communicator> MakeSelfCommunicator();
std::unique_ptr<Communicator> MakeVirtualCommunicator(const Mesh& mesh);

}  // namespace ridgeline::engine
