#include "engine/comm/collective.h"

#include "engine/comm/collective_attrs.h"
#include "engine/ops/record.h"

namespace ridgeline {

const OpDef kAllGather{"all_gather"};
const OpDef kReduceScatter{"reduce_scatter"};
const OpDef kAllReduce{"all_reduce"};
const OpDef kLand{"land"};
const OpDef kSumOverRanks{"sum_over_ranks"};
const OpDef kMaxOverRanks{"max_over_ranks"};

double RingBytes(double whole_bytes, int64_t world) {
  return whole_bytes * static_cast<double>(world - 1) / static_cast<double>(world);
}

Flight Flights::AllGather(Tensor part, Tensor full) {
  Require(
      part.dtype == full.dtype && part.contiguous() && full.contiguous() && part.elements() * world_ == full.elements(),
      kAllGather, "full must have every rank's part, in part's dtype", {{"part", part}, {"full", full}});
  return Begin(kAllGather, part, full, RingBytes(static_cast<double>(full.bytes()), world_), false);
}

Flight Flights::ReduceScatter(Tensor full, Tensor part, bool accumulate) {
  Require(full.dtype == DType::kF32 && IsFloat(part) && part.contiguous() && full.contiguous() &&
              part.elements() * world_ == full.elements(),
          kReduceScatter, "full must have every rank's part, in fp32", {{"full", full}, {"part", part}});
  return Begin(kReduceScatter, full, part, RingBytes(static_cast<double>(full.bytes()), world_), accumulate);
}

Flight Flights::AllReduce(Tensor full) {
  Require(full.dtype == DType::kF32 && full.contiguous() && full.elements() % world_ == 0, kAllReduce,
          "full must have as many elements for each rank, in fp32", {{"full", full}});
  return Begin(kAllReduce, full, {}, 2 * RingBytes(static_cast<double>(full.bytes()), world_), false);
}

void Flights::Land(const Flight& flight) {
  trace_.Call(kLand, {flight.tensors[0], flight.tensors[1]}, {}, CollectiveAttrs{flight.number, false});
}

void Flights::SumOverRanks(Tensor value) {
  Require(IsScalar(value), kSumOverRanks, "value must be (1, 1) in fp32", {{"value", value}});
  trace_.Call(kSumOverRanks, {value}, {}, CollectiveAttrs{next_++, false});
}

void Flights::MaxOverRanks(Tensor values) {
  Require(values.defined() && values.dtype == DType::kF32 && values.contiguous(), kMaxOverRanks,
          "values must be contiguous, in fp32", {{"values", values}});
  trace_.Call(kMaxOverRanks, {values}, {}, CollectiveAttrs{next_++, false});
}

Flight Flights::Begin(const OpDef& op, Tensor a, Tensor b, double sent_bytes, bool accumulate) {
  Flight flight{next_++, {a, b}};
  trace_.Call(op, {a, b}, {.bytes = sent_bytes}, CollectiveAttrs{flight.number, accumulate});
  return flight;
}

}  // namespace ridgeline
