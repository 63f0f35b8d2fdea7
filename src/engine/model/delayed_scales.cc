#include "engine/model/delayed_scales.h"

namespace ridgeline::engine {

DelayedScales::DelayedScales(Trace& trace, const ModelShape& shape, const RunSpec& spec, const Recipe& recipe)
    : trace_(trace) {
  if (!recipe.delayed()) return;
  const auto add = [&](Format format, int64_t tensors) {
    DelayedScaling state;
    state.format = format;
    state.history = trace.Persistent(DType::kF32, tensors, spec.amax_history, Category::kData);
    state.scale = trace.Persistent(DType::kF32, tensors, 1, Category::kData);
    state.amax = trace.Persistent(DType::kF32, tensors, 1, Category::kData);
    states_.push_back(state);
  };
  add(recipe.linear->x_fprop.format, 2 * shape.linears);
  add(recipe.linear->dy_dgrad.format, shape.linears);
}

DelayedScale DelayedScales::Slot(size_t state, int64_t row) const {
  if (states_.empty()) return {};
  return {states_[state].scale.Rows(row, 1), states_[state].amax.Rows(row, 1)};
}

void DelayedScales::EndMicroStep() {
  trace_.SetLayer(-1);
  for (const DelayedScaling& state : states_) {
    UpdateDelayedScales(trace_, state.history, state.scale, state.amax, state.format);
  }
}

}  // namespace ridgeline::engine
