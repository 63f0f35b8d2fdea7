// The ranks that share the products of each layer, and what they exchange between products.
//
// A layer's first products are split by outputs, its last ones by inputs (Shoeybi et al., "Megatron-LM", 2019). So a
// rank's last product is a term of the sum over the group, and only sums are exchanged. With sequence parallelism
// (Korthikanti et al., "Reducing Activation Recomputation", 2022), each rank has its own tokens between the products:
// norms, dropouts and the residual stream. Then a gather of tokens goes before the first product, and a sum that
// leaves each rank its own tokens comes after the last one. Backward, each of the two takes the other's place. Without
// sequence parallelism, every rank has all tokens everywhere, the gather is nothing and the sum is an all-reduce.
//
// Tokens are split in the order in which they lie, sequence after sequence, since nothing between the products knows
// where a sequence ends. So parts are contiguous, and need not divide sequences.
#pragma once

#include <cstdint>

#include "engine/comm/collective.h"
#include "engine/device/trace.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

class TensorGroup {
 public:
  // References must outlive it. `rank`: of all ranks.
  TensorGroup(Trace& trace, Flights& flights, const RunSpec& spec, int64_t rank);

  int64_t ranks() const { return ranks_; }
  int64_t place() const { return place_; }
  bool splits_tokens() const { return splits_tokens_; }
  int64_t tokens() const { return tokens_; }                                          // of a micro-step
  int64_t own_tokens() const { return splits_tokens_ ? tokens_ / ranks_ : tokens_; }  // between the products
  // The number in the step's micro-batch, over all data-parallel ranks, of this rank's first token between the
  // products.
  int64_t first_token() const { return first_token_; }

  // A tensor, perhaps in flight: it may be read after Land.
  struct Arriving {
    Tensor tensor;
    Flight flight = {};
  };
  // own (own tokens, cols) of each rank -> (tokens, cols). `own` itself if tokens are not split.
  Arriving Gather(Tensor own);
  // terms (tokens, cols) -> their sum over the ranks, (own tokens, cols): in place if tokens are not split, else in a
  // new tensor, and the terms are lost. `terms` itself if the group is one rank.
  Arriving Sum(Tensor terms);
  Tensor Land(const Arriving& arriving) {
    flights_.Land(arriving.flight);
    return arriving.tensor;
  }

  // part (1, n) fp32 of each rank -> (1, ranks x n), in their order.
  Tensor GatherParts(Tensor part);
  // value (1, 1) fp32, of the rank's own tokens = its sum over the ranks. Nothing if tokens are not split.
  void SumOverTokens(Tensor value);

 private:
  Trace& trace_;
  Flights& flights_;
  const int64_t ranks_;
  const int64_t place_;
  const int64_t tokens_;
  const bool splits_tokens_;
  const int64_t first_token_;
};

}  // namespace ridgeline::engine
