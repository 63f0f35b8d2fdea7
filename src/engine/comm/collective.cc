#include "engine/comm/collective.h"

#include "engine/ops/record.h"

namespace ridgeline::engine {

const Op<AllGatherOperands, CollectiveAttrs> kAllGather{OpDef::TakeOff("all_gather", Collective::kAllGather)};
const Op<ReduceScatterOperands, CollectiveAttrs> kReduceScatter{
    OpDef::TakeOff("reduce_scatter", Collective::kReduceScatter)};
const Op<InPlaceOperands, CollectiveAttrs> kAllReduce{OpDef::TakeOff("all_reduce", Collective::kAllReduce)};
const Op<InPlaceOperands, CollectiveAttrs> kSumOverRanks{OpDef::AtOnce("sum_over_ranks", Collective::kAllReduce)};
const Op<InPlaceOperands, CollectiveAttrs> kMaxOverRanks{OpDef::AtOnce("max_over_ranks", Collective::kAllReduce)};
const Op<LandOperands, CollectiveAttrs> kLand{OpDef::Landing("land")};

namespace {

bool IsSum(Reduction reduction) { return reduction == Reduction::kSum || reduction == Reduction::kMean; }

}  // namespace

Flights::Group Flights::GroupAlong(MeshAxes axes) const {
  const RankGroup group = mesh_.GroupOf(0, axes);
  return {group.ranks, group.ranks == mesh_.ranks() ? MeshAxes::All() : axes};
}

double Flights::Group::RingBytes(const Tensor& whole) const {
  return static_cast<double>(whole.bytes()) * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
}

Flight Flights::AllGather(MeshAxes axes, Tensor part, Tensor full) {
  const Group group = GroupAlong(axes);
  Require(part.dtype == full.dtype && part.contiguous() && full.contiguous() &&
              part.elements() * group.ranks == full.elements(),
          kAllGather, "full must have every rank's part, in part's dtype", {{"part", part}, {"full", full}});
  if (group.ranks == 1) {
    Require(SamePlace(part, full), kAllGather, "one rank's part must lie in full", {{"part", part}, {"full", full}});
    return {};
  }
  const Flight flight{next_++, {part, full}};
  trace_.Call(kAllGather, {{part}, {full}}, {.wire_bytes = group.RingBytes(full)},
              {.flight = flight.number, .axes = group.axes});
  return flight;
}

Flight Flights::ReduceScatter(MeshAxes axes, Tensor full, Tensor part, bool accumulate, Reduction reduction) {
  const Group group = GroupAlong(axes);
  const bool is_of_16_bits = IsFloat(full) && full.dtype != DType::kF32 && part.dtype == full.dtype && !accumulate;
  Require((is_of_16_bits || (full.dtype == DType::kF32 && IsF32OrBf16(part))) && part.contiguous() &&
              full.contiguous() && part.elements() * group.ranks == full.elements() && IsSum(reduction),
          kReduceScatter, "full must have every rank's part, in fp32, or in 16 bits without accumulation",
          {{"full", full}, {"part", part}});
  Require(group.ranks > 1, kReduceScatter, "one rank has nothing to reduce: use full", {{"full", full}});
  const Flight flight{next_++, {full, part}};
  trace_.Call(kReduceScatter, {{full, accumulate ? part : Tensor{}}, {full, part}},
              {.wire_bytes = group.RingBytes(full)}, {flight.number, accumulate, reduction, group.axes});
  return flight;
}

Flight Flights::AllReduce(MeshAxes axes, Tensor full, Reduction reduction) {
  const Group group = GroupAlong(axes);
  Require(IsFloat(full) && full.contiguous() && full.elements() % group.ranks == 0 && IsSum(reduction), kAllReduce,
          "full must have as many elements for each rank, and be floating", {{"full", full}});
  if (group.ranks == 1) return {};
  const Flight flight{next_++, {full, {}}};
  trace_.Call(kAllReduce, {{full}, {full}}, {.wire_bytes = 2 * group.RingBytes(full)},
              {.flight = flight.number, .reduction = reduction, .axes = group.axes});
  return flight;
}

void Flights::Land(const Flight& flight) {
  if (flight.number < 0) return;
  const auto& [a, b] = flight.tensors;
  const auto bytes = static_cast<double>(a.bytes() + b.bytes());
  trace_.Call(kLand, {{a, b}}, {.more_bytes = -bytes}, {flight.number});  // it moves nothing
}

void Flights::SumOverRanks(MeshAxes axes, Tensor value) {
  const Group group = GroupAlong(axes);
  Require(IsScalar(value), kSumOverRanks, "value must be (1, 1) in fp32", {{"value", value}});
  if (group.ranks == 1) return;
  trace_.Call(kSumOverRanks, {{value}, {value}}, {.wire_bytes = 2 * group.RingBytes(value)},
              {.flight = next_++, .reduction = Reduction::kSum, .axes = group.axes});
}

void Flights::MaxOverRanks(MeshAxes axes, Tensor values) {
  const Group group = GroupAlong(axes);
  Require(values.defined() && values.dtype == DType::kF32 && values.contiguous(), kMaxOverRanks,
          "values must be contiguous, in fp32", {{"values", values}});
  if (group.ranks == 1) return;
  trace_.Call(kMaxOverRanks, {{values}, {values}}, {.wire_bytes = 2 * group.RingBytes(values)},
              {.flight = next_++, .reduction = Reduction::kMax, .axes = group.axes});
}

}  // namespace ridgeline::engine
