// Holds the parameters' state, hands out whole weights, takes gradients and records the optimizer's updates.
//
// Unsharded, a weight is its state. Sharded (FSDP: Rajbhandari et al., "ZeRO", 2020; Zhao et al., "PyTorch FSDP",
// 2023), a rank keeps 1/world of each parameter; a weight is gathered when it is asked for and dropped at EndUse, and
// a gradient is reduce-scattered in fp32 when it is done.
//
// With one micro-step and neither clipping nor loss scaling, a parameter is updated as soon as its gradient is done, so
// gradients of different layers never live together. Otherwise they are kept to the end of the step.
#pragma once

#include <vector>

#include "engine/device/trace.h"
#include "engine/model/parameter.h"
#include "engine/model/parameter_access.h"
#include "engine/ops/optimizer.h"
#include "engine/precision/recipe.h"

namespace ridgeline {

// Persistent tensors of one parameter: (rows, cols) unsharded, (1, shard elements) sharded.
struct ParameterState {
  Tensor work;      // compute dtype
  Tensor low;       // what keeps the fp32 master weight, where the recipe has one beside `work`
  Tensor m, v;      // Adam's moments
  Tensor gradient;  // this rank's part; defined after the step program is recorded
};

struct ParameterStoreOptions {
  AdamAttrs adam;
  double grad_clip = 0;  // 0: none
  Tensor loss_scale;     // of a loss-scaled recipe (ops/optimizer.h); else undefined
  int64_t micro_steps = 1;
  int64_t world = 1;
  bool sharded = false;
  bool keep_gradients = false;  // to be read after the step (verification)
};

class ParameterStore final : public ParameterAccess {
 public:
  ParameterStore(Trace& trace, const ModelShape& shape, const Recipe& recipe, const ParameterStoreOptions& options);

  Tensor Weight(int parameter) override;
  Gradient NextGradient(int parameter) override;
  void GradientDone(int parameter) override;
  void EndUse() override;

  void BeginMicroStep(int64_t micro_step) { last_micro_step_ = micro_step + 1 == options_.micro_steps; }
  // Records what is left: the gradient norm, clipping, updates.
  void FinishStep();

  const std::vector<ParameterState>& states() const { return states_; }
  Tensor grad_norm() const { return grad_norm_; }  // (1, 1) fp32; undefined where no update waits for it

 private:
  struct Entry {
    Tensor gathered;       // sharded: the whole weight, while in use
    Tensor full_gradient;  // sharded: this micro-step's, before it is reduced
    bool has_gradient = false;
  };
  // Whether updates wait for all gradients: their norm decides.
  bool waits() const { return options_.grad_clip > 0 || options_.loss_scale.defined(); }
  void Update(int parameter, Tensor scale);
  Tensor NewGradient(DType dtype, int64_t rows, int64_t cols);
  // Elements of a rank's part.
  int64_t ShardElements(const Parameter& p) const { return (p.elements() + options_.world - 1) / options_.world; }

  Trace& trace_;
  const ModelShape& shape_;
  const Recipe& recipe_;
  ParameterStoreOptions options_;
  std::vector<ParameterState> states_;
  std::vector<Entry> entries_;
  std::vector<int> in_use_;
  std::vector<int> waiting_;  // done, to be updated at the end of the step
  Tensor grad_norm_;
  Tensor squared_sum_;
  bool last_micro_step_ = true;
};

}  // namespace ridgeline
