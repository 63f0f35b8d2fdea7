// Collectives as ops: recorded by the step program, run by a CollectiveQueue.
//
// A large collective is two calls, its beginning and its landing. Between them it flies, and what is recorded there
// must not touch its tensors: they live, whole, from the one call to the other, and the plan says so. Both calls carry
// the number of the flight.
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
    Tensor part;  // where it is added to
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

// Whatever flew may be read from here on, and changed.
struct LandOperands {
  struct {
    Tensor a, b;
  } reads;
};
extern const Op<LandOperands, CollectiveAttrs> kLand;

// Of a call of one of these ops. Throws Error(kInternal) for another's.
const CollectiveAttrs& CollectiveAttrsOf(const OpCall& call);

// A collective on its way.
struct Flight {
  int32_t number = -1;
  Tensor tensors[2];
};

class Flights {
 public:
  explicit Flights(Trace& trace, int64_t world) : trace_(trace), world_(world) {}

  // full (1, world * part) = every rank's part (1, n), in rank order. Same dtype; `part` may be its own place in full.
  Flight AllGather(Tensor part, Tensor full);

  // part (1, n) = the mean over the ranks of their values for this rank's part of full (1, world * n); added to part
  // where `accumulate`. full fp32, and used up; part fp32 or bf16.
  Flight ReduceScatter(Tensor full, Tensor part, bool accumulate);

  // full (1, world * n) fp32 = its mean over the ranks.
  Flight AllReduce(Tensor full);

  // What the flight wrote may be read from here on.
  void Land(const Flight& flight);

  // value (1, 1) fp32 = its sum over the ranks, at once.
  void SumOverRanks(Tensor value);

  // values, fp32 and few = their largest over the ranks, at once.
  void MaxOverRanks(Tensor values);

 private:
  // What a rank sends in a ring: (world - 1) / world of the whole.
  double RingBytes(const Tensor& whole) const;

  Trace& trace_;
  int64_t world_;
  int32_t next_ = 0;
};

}  // namespace ridgeline
