// Collectives as ops. The step program records them, and a CollectiveQueue runs them.
//
// A large collective is two calls: its take-off and its landing. Between them it is in flight, and calls recorded there
// must not touch its tensors. The plan keeps these tensors, whole, from the one call to the other. Both calls carry the
// number of the flight.
#pragma once

#include "engine/device/trace.h"

namespace ridgeline {

// The ranks that take part in a collective.
enum class ProcessGroup : int32_t { kWorld = 0 };

struct CollectiveAttrs {
  int32_t flight = 0;
  bool accumulate = false;
  ProcessGroup group = ProcessGroup::kWorld;
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

// A collective in flight.
struct Flight {
  int32_t number = -1;
  Tensor tensors[2];
};

class Flights {
 public:
  explicit Flights(Trace& trace, int64_t world) : trace_(trace), world_(world) {}

  // full (1, world * part) = every rank's part (1, n), in rank order. Same dtype; `part` may lie in its own place in
  // full.
  Flight AllGather(Tensor part, Tensor full);

  // part (1, n) = the mean over the ranks of their values for this rank's part of full (1, world * n), which is added
  // to part if `accumulate`. full is fp32, and its contents are lost; part is fp32 or bf16.
  Flight ReduceScatter(Tensor full, Tensor part, bool accumulate);

  // full (1, world * n) fp32 = its mean over the ranks.
  Flight AllReduce(Tensor full);

  // From here on, the outputs of the flight may be read.
  void Land(const Flight& flight);

  // value (1, 1) fp32 = its sum over the ranks, at once.
  void SumOverRanks(Tensor value);

  // values, fp32 and few = their maximum over the ranks, at once.
  void MaxOverRanks(Tensor values);

 private:
  // Returns how many bytes a rank sends in a ring: (world - 1) / world of the whole.
  double RingBytes(const Tensor& whole) const;

  Trace& trace_;
  int64_t world_;
  int32_t next_ = 0;
};

}  // namespace ridgeline
