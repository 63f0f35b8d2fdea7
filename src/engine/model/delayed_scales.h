// The state of delayed scaling: a slot for each quantized tensor of the linear layers.
#pragma once

#include <vector>

#include "engine/device/trace.h"
#include "engine/model/parameter.h"
#include "engine/ops/quantize.h"
#include "engine/precision/recipe.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

// The slots of one format, one per row. Persistent, fp32.
struct DelayedScaling {
  Format format = Format::kE4M3;
  Tensor history;  // (tensors, history length)
  Tensor scale;    // (tensors, 1); initially 1
  Tensor amax;     // (tensors, 1); 0 between steps
};

class DelayedScales {
 public:
  // Has no slots if the recipe's scaling is not delayed. The trace must outlive it.
  DelayedScales(Trace& trace, const ModelShape& shape, const RunSpec& spec, const Recipe& recipe);

  // A linear layer's slot; undefined without slots.
  DelayedScale Input(const LinearParameters& linear) const { return Slot(0, 2 * linear.number); }
  DelayedScale Weight(const LinearParameters& linear) const { return Slot(0, 2 * linear.number + 1); }
  DelayedScale Gradient(const LinearParameters& linear) const { return Slot(1, linear.number); }

  // Ends a micro-step, updates of the weights included: the observed amaxes become history. (The forward pass's could
  // join after the forward pass; nothing reads it before the next one, and recomputation reads the old one.)
  void EndMicroStep();

  const std::vector<DelayedScaling>& states() const { return states_; }  // of inputs and weights; of gradients

 private:
  DelayedScale Slot(size_t state, int64_t row) const;

  Trace& trace_;
  std::vector<DelayedScaling> states_;
};

}  // namespace ridgeline::engine
