// A layer's feed-forward network: a product, an activation, and a product back.
#pragma once

#include "engine/model/sublayer.h"

namespace ridgeline::engine {

class MlpSublayer final : public Sublayer {
 public:
  using Sublayer::Sublayer;

 private:
  Tensor Branch(const SublayerParameters& p, SavedSublayer& saved, Wanted wanted) override;
  void BranchAgain(const SublayerParameters& p, SavedSublayer& saved) override;
  Tensor BranchBackward(const SublayerParameters& p, int64_t micro_step, SavedSublayer& saved, Tensor d) override;
  void DropCheapOfBranch(SavedSublayer& saved) const override { saved.last = {}; }

  LinearInput Activation(const SublayerParameters& p, Tensor up, Wanted wanted);
  // Returns the gradient of `up`, which is read here for the last time: in place of one of the operands, or as codes.
  LinearGradient ActivationBackward(const SublayerParameters& p, Tensor d_act, Tensor up);
};

}  // namespace ridgeline::engine
