#include "engine/model/tensor_group.h"

namespace ridgeline::engine {

TensorGroup::TensorGroup(Trace& trace, Flights& flights, const RunSpec& spec, int64_t rank)
    : trace_(trace),
      flights_(flights),
      ranks_(flights.mesh().size(MeshAxis::kTensor)),
      place_(flights.mesh().PlaceOf(rank, MeshAxis::kTensor)),
      tokens_(spec.batch_size * spec.seq_length),
      splits_tokens_(ranks_ > 1 && spec.sequence_parallel.value_or(true)),
      first_token_(flights.mesh().PlaceOf(rank, kDataAxes) * tokens_ +
                   (splits_tokens_ ? place_ * (tokens_ / ranks_) : 0)) {}

TensorGroup::Arriving TensorGroup::Gather(Tensor own) {
  if (!splits_tokens_) return {own};
  const Tensor all = trace_.Temporary(own.dtype, tokens_, own.cols, Category::kActivations);
  return {all, flights_.AllGather(MeshAxis::kTensor, own, all)};
}

TensorGroup::Arriving TensorGroup::Sum(Tensor terms) {
  if (ranks_ == 1) return {terms};
  if (!splits_tokens_) return {terms, flights_.AllReduce(MeshAxis::kTensor, terms, Reduction::kSum)};
  const Tensor own = trace_.Temporary(terms.dtype, own_tokens(), terms.cols, Category::kActivations);
  return {own, flights_.ReduceScatter(MeshAxis::kTensor, terms, own, false, Reduction::kSum)};
}

Tensor TensorGroup::GatherParts(Tensor part) {
  if (ranks_ == 1) return part;
  const Tensor all = trace_.Temporary(part.dtype, 1, ranks_ * part.cols, Category::kWorkspace);
  flights_.Land(flights_.AllGather(MeshAxis::kTensor, part, all));
  return all;
}

void TensorGroup::SumOverTokens(Tensor value) {
  if (splits_tokens_) flights_.SumOverRanks(MeshAxis::kTensor, value);
}

}  // namespace ridgeline::engine
