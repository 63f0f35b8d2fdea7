// Collectives as ops. The step program records them, and a CollectiveQueue runs them. Each names the axes of the mesh
// along which it goes (mesh.h), and is among the ranks of a group along them. A group of one rank costs nothing: no
// call is recorded.
//
// A large collective is two calls: its take-off and its landing. Between them it is in flight, and calls recorded there
// must not touch its tensors. The plan keeps these tensors, whole, from the one call to the other. Both calls carry the
// number of the flight.
#pragma once

#include "engine/comm/mesh.h"
#include "engine/comm/reduction.h"
#include "engine/device/trace.h"

namespace ridgeline::engine {

struct CollectiveAttrs {
  int32_t flight = 0;
  bool accumulate = false;
  Reduction reduction = Reduction::kMean;  // of a collective that reduces
  MeshAxes axes = MeshAxes::All();         // all of them for each group that has all ranks
};

struct AllGatherOperands {
  struct {
    Tensor part;
  } reads;
  struct {
    Tensor full;
  } writes;
};
extern const Op<AllGatherOperands, CollectiveAttrs> kAllGather;

struct ReduceScatterOperands {
  struct {
    Tensor full;
    Tensor part;  // the part that is added to
  } reads;
  struct {
    Tensor full, part;
  } writes;
};
extern const Op<ReduceScatterOperands, CollectiveAttrs> kReduceScatter;

struct InPlaceOperands {
  struct {
    Tensor values;
  } reads;
  struct {
    Tensor values;
  } writes;
};
extern const Op<InPlaceOperands, CollectiveAttrs> kAllReduce;
extern const Op<InPlaceOperands, CollectiveAttrs> kSumOverRanks;
extern const Op<InPlaceOperands, CollectiveAttrs> kMaxOverRanks;

// From here on, the tensors of a flight may be read and changed.
struct LandOperands {
  struct {
    Tensor a, b;
  } reads;
};
extern const Op<LandOperands, CollectiveAttrs> kLand;

// REQUIRES: the call is of one of these ops; else throws Error(kInternal).
inline const CollectiveAttrs& CollectiveAttrsOf(const OpCall& call) { return call.attrs<CollectiveAttrs>(); }

// A collective in flight; number -1: nothing was recorded.
struct Flight {
  int32_t number = -1;
  Tensor tensors[2];
};

class Flights {
 public:
  explicit Flights(Trace& trace, const Mesh& mesh) : trace_(trace), mesh_(mesh) {}
  const Mesh& mesh() const { return mesh_; }

  // Below, n is the number of ranks in a group along `axes`, and parts are in the order of its ranks.

  // full (1, n * part) = every rank's part (1, part). Same dtype; `part` may lie in its own place in full, and must
  // lie there if n is 1.
  Flight AllGather(MeshAxes axes, Tensor part, Tensor full);

  // part (1, elements) = the mean or the sum over the ranks of their values for this rank's part of full (1, n *
  // elements), which is added to part if `accumulate`. The contents of full are lost. full is fp32 and part fp32 or
  // bf16; or both are bf16 or fp16, which are rounded after each addition and cannot be accumulated. Throws
  // Error(kInternal) if n is 1: use full.
  Flight ReduceScatter(MeshAxes axes, Tensor full, Tensor part, bool accumulate,
                       Reduction reduction = Reduction::kMean);

  // full (1, n * elements), floating = its mean or its sum over the ranks. 16 bits are rounded after each addition.
  Flight AllReduce(MeshAxes axes, Tensor full, Reduction reduction = Reduction::kMean);

  // From here on, the outputs of the flight may be read.
  void Land(const Flight& flight);

  // value (1, 1) fp32 = its sum over the ranks, at once.
  void SumOverRanks(MeshAxes axes, Tensor value);

  // values, fp32 and few = their maximum over the ranks, at once.
  void MaxOverRanks(MeshAxes axes, Tensor values);

 private:
  // A group along some axes.
  struct Group {
    int64_t ranks = 1;
    MeshAxes axes = MeshAxes::All();
    // Returns how many bytes a rank sends in a ring: (ranks - 1) / ranks of the whole.
    double RingBytes(const Tensor& whole) const;
  };
  Group GroupAlong(MeshAxes axes) const;

  Trace& trace_;
  Mesh mesh_;
  int32_t next_ = 0;
};

}  // namespace ridgeline::engine
