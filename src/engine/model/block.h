// One transformer layer, forward and backward, for every family: a list of sublayers.
#pragma once

#include <vector>

#include "engine/model/attention.h"
#include "engine/model/mlp.h"
#include "engine/model/parameter.h"
#include "engine/model/sublayer.h"

namespace ridgeline::engine {

// What each sublayer's backward pass reads.
using SavedLayer = std::vector<SavedSublayer>;

class Block {
 public:
  explicit Block(const SublayerContext& context)
      : trace_(context.trace), shape_(context.shape), attention_(context), mlp_(context) {}

  // Returns the layer's output for `in`, or nothing if it is not wanted (a recomputation). `micro_step` selects the
  // dropouts' masks.
  ResidualStream Forward(int64_t layer, int64_t micro_step, const ResidualStream& in, SavedLayer& saved, Wanted wanted);

  // d (tokens, hidden) holds the gradient of the layer's output, and afterwards that of its input.
  void Backward(int64_t layer, int64_t micro_step, SavedLayer& saved, Tensor d);

  // Drops what the backward pass computes again without a product.
  void DropCheap(int64_t layer, SavedLayer& saved);

 private:
  Sublayer& Of(SublayerKind kind);
  const std::vector<SublayerParameters>& SublayersOf(int64_t layer) const {
    return shape_.layers[static_cast<size_t>(layer)];
  }

  Trace& trace_;
  const ModelShape& shape_;
  AttentionSublayer attention_;
  MlpSublayer mlp_;
};

}  // namespace ridgeline::engine
