// Activation checkpointing: which activations a layer keeps for its backward pass, and which it computes again.
//
//   none       everything is kept
//   selective  what needs no matrix product is computed again (Sublayer::DropCheap): the norms' outputs, and the MLP's
//              activation
//   full/K     K layers keep one input; their forward passes run again, as a group, before their backward passes.
//              The last layer's final product is not run again: nothing reads its output.
//
// Every policy runs the same kernels on the same values, so gradients are bit-identical under all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/block.h"

namespace ridgeline::engine {

// Runs the layers of one micro-step under a policy.
class LayerRunner {
 public:
  LayerRunner(Trace& trace, ParameterAccess& parameters, Block& block, int64_t layers,
              const Checkpointing& checkpointing)
      : trace_(trace), parameters_(parameters), block_(block), layers_(layers), checkpointing_(checkpointing) {}

  ResidualStream Forward(int64_t micro_step, Tensor x);

  // d: the gradient of Forward's result; afterwards that of its argument.
  void Backward(int64_t micro_step, Tensor d);

 private:
  void BackwardGroup(int64_t micro_step, int64_t first, int64_t last, Tensor d);

  Trace& trace_;
  ParameterAccess& parameters_;
  Block& block_;
  int64_t layers_;
  Checkpointing checkpointing_;
  std::vector<SavedLayer> saved_;
};

}  // namespace ridgeline::engine
