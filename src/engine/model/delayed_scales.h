// The state of delayed scaling: a slot for each quantized tensor of the linear layers.
#pragma once

#include <vector>

#include "engine/device/trace.h"
#include "engine/ops/quantize.h"
#include "engine/precision/recipe.h"
#include "ridgeline/run.h"

namespace ridgeline {

enum class LinearLayer : uint8_t { kQkv, kOut, kUp, kDown };
inline constexpr int64_t kLinearLayers = 4;  // in a block

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
  DelayedScales(Trace& trace, const RunSpec& spec, const Recipe& recipe);

  // A linear layer's slot; undefined without slots.
  DelayedScale Input(int64_t layer, LinearLayer which) const { return Slot(0, 2 * Index(layer, which)); }
  DelayedScale Weight(int64_t layer, LinearLayer which) const { return Slot(0, 2 * Index(layer, which) + 1); }
  DelayedScale Gradient(int64_t layer, LinearLayer which) const { return Slot(1, Index(layer, which)); }

  // Ends a micro-step, updates of the weights included: the observed amaxes become history. (The forward pass's could
  // join after the forward pass; nothing reads it before the next one, and recomputation reads the old one.)
  void EndMicroStep();

  const std::vector<DelayedScaling>& states() const { return states_; }  // of inputs and weights; of gradients

 private:
  static int64_t Index(int64_t layer, LinearLayer which) { return layer * kLinearLayers + static_cast<int64_t>(which); }
  DelayedScale Slot(size_t state, int64_t row) const;

  Trace& trace_;
  std::vector<DelayedScaling> states_;
};

}  // namespace ridgeline
