#include "engine/comm/collective.h"

#include "engine/ops/record.h"

namespace ridgeline {

const Op<AllGatherOperands, CollectiveAttrs> kAllGather{OpDef::TakeOff("all_gather", Collective::kAllGather)};
const Op<ReduceScatterOperands, CollectiveAttrs> kReduceScatter{
    OpDef::TakeOff("reduce_scatter", Collective::kReduceScatter)};
const Op<InPlaceOperands, CollectiveAttrs> kAllReduce{OpDef::TakeOff("all_reduce", Collective::kAllReduce)};
const Op<InPlaceOperands, CollectiveAttrs> kSumOverRanks{OpDef::AtOnce("sum_over_ranks", Collective::kAllReduce)};
const Op<InPlaceOperands, CollectiveAttrs> kMaxOverRanks{OpDef::AtOnce("max_over_ranks", Collective::kAllReduce)};
const Op<LandOperands, CollectiveAttrs> kLand{OpDef::Landing("land")};

Flight Flights::AllGather(Tensor part, Tensor full) {
  Require(
      part.dtype == full.dtype && part.contiguous() && full.contiguous() && part.elements() * world_ == full.elements(),
      kAllGather, "full must have every rank's part, in part's dtype", {{"part", part}, {"full", full}});
  const Flight flight{next_++, {part, full}};
  trace_.Call(kAllGather, {{part}, {full}}, {.wire_bytes = RingBytes(full)}, {flight.number});
  return flight;
}

Flight Flights::ReduceScatter(Tensor full, Tensor part, bool accumulate) {
  Require(full.dtype == DType::kF32 && IsFloat(part) && part.contiguous() && full.contiguous() &&
              part.elements() * world_ == full.elements(),
          kReduceScatter, "full must have every rank's part, in fp32", {{"full", full}, {"part", part}});
  const Flight flight{next_++, {full, part}};
  trace_.Call(kReduceScatter, {{full, accumulate ? part : Tensor{}}, {full, part}}, {.wire_bytes = RingBytes(full)},
              {flight.number, accumulate});
  return flight;
}

Flight Flights::AllReduce(Tensor full) {
  Require(full.dtype == DType::kF32 && full.contiguous() && full.elements() % world_ == 0, kAllReduce,
          "full must have as many elements for each rank, in fp32", {{"full", full}});
  const Flight flight{next_++, {full, {}}};
  trace_.Call(kAllReduce, {{full}, {full}}, {.wire_bytes = 2 * RingBytes(full)}, {flight.number});
  return flight;
}

void Flights::Land(const Flight& flight) {
  const auto& [a, b] = flight.tensors;
  const auto bytes = static_cast<double>(a.bytes() + b.bytes());
  trace_.Call(kLand, {{a, b}}, {.more_bytes = -bytes}, {flight.number});  // it moves nothing
}

void Flights::SumOverRanks(Tensor value) {
  Require(IsScalar(value), kSumOverRanks, "value must be (1, 1) in fp32", {{"value", value}});
  trace_.Call(kSumOverRanks, {{value}, {value}}, {.wire_bytes = 2 * RingBytes(value)}, {next_++});
}

void Flights::MaxOverRanks(Tensor values) {
  Require(values.defined() && values.dtype == DType::kF32 && values.contiguous(), kMaxOverRanks,
          "values must be contiguous, in fp32", {{"values", values}});
  trace_.Call(kMaxOverRanks, {{values}, {values}}, {.wire_bytes = 2 * RingBytes(values)}, {next_++});
}

double Flights::RingBytes(const Tensor& whole) const {
  return static_cast<double>(whole.bytes()) * static_cast<double>(world_ - 1) / static_cast<double>(world_);
}

}  // namespace ridgeline
