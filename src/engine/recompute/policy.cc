#include "engine/recompute/policy.h"

#include <algorithm>

namespace ridgeline::engine {

ResidualStream LayerRunner::Forward(int64_t micro_step, Tensor x) {
  ResidualStream stream = {x};
  trace_.SetPhase(Phase::kForward);
  saved_.assign(static_cast<size_t>(layers_), {});
  for (int64_t layer = 0; layer < layers_; ++layer) {
    SavedLayer& saved = saved_[static_cast<size_t>(layer)];
    stream = block_.Forward(layer, micro_step, stream, saved,
                            {.saved = checkpointing_.policy == Checkpointing::Policy::kNone});
    if (checkpointing_.policy == Checkpointing::Policy::kSelective) {
      block_.DropCheap(layer, saved);
    } else if (checkpointing_.policy == Checkpointing::Policy::kFull) {
      const Tensor input = saved.front().x;
      saved.clear();
      if (layer % checkpointing_.layers_per_group == 0) saved.emplace_back().x = input;
    }
    parameters_.EndUse();
  }
  return stream;
}

void LayerRunner::Backward(int64_t micro_step, Tensor d) {
  const int64_t group = checkpointing_.layers_per_group;
  for (int64_t first = (layers_ - 1) / group * group; first >= 0; first -= group) {
    BackwardGroup(micro_step, first, std::min(first + group, layers_) - 1, d);
  }
  saved_.clear();
}

void LayerRunner::BackwardGroup(int64_t micro_step, int64_t first, int64_t last, Tensor d) {
  if (checkpointing_.policy == Checkpointing::Policy::kFull) {
    trace_.SetPhase(Phase::kRecompute);
    ResidualStream stream = {saved_[static_cast<size_t>(first)].front().x};
    for (int64_t layer = first; layer <= last; ++layer) {
      stream = block_.Forward(layer, micro_step, stream, saved_[static_cast<size_t>(layer)], {.output = layer < last});
      if (layer < last) parameters_.EndUse();
    }
  }
  trace_.SetPhase(Phase::kBackward);
  for (int64_t layer = last; layer >= first; --layer) {
    block_.Backward(layer, micro_step, saved_[static_cast<size_t>(layer)], d);
    saved_[static_cast<size_t>(layer)] = {};
    parameters_.EndUse();
  }
}

}  // namespace ridgeline::engine
