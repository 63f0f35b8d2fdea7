#include "engine/shard/parameter_store.h"

#include "engine/comm/collective.h"
#include "engine/ops/elementwise.h"

namespace ridgeline {

ParameterStore::ParameterStore(Trace& trace, const ModelShape& shape, const Recipe& recipe,
                               const ParameterStoreOptions& options)
    : trace_(trace), shape_(shape), recipe_(recipe), options_(options), entries_(shape.parameters.size()) {
  for (const Parameter& p : shape.parameters) {
    const int64_t rows = options_.sharded ? 1 : p.rows;
    const int64_t cols = options_.sharded ? ShardElements(p) : p.cols;
    ParameterState state;
    state.work = trace.Persistent(recipe.compute, rows, cols, Category::kParameters);
    if (recipe.master != Master::kNone) {
      const DType dtype = recipe.master == Master::kWhole ? DType::kF32 : DType::kI16;
      state.low = trace.Persistent(dtype, rows, cols, Category::kParameters);
    }
    state.m = trace.Persistent(recipe.moments, rows, cols, Category::kOptimizer);
    state.v = trace.Persistent(recipe.moments, rows, cols, Category::kOptimizer);
    states_.push_back(state);
  }
  if (waits()) {
    grad_norm_ = trace.Persistent(DType::kF32, 1, 1, Category::kData);
    squared_sum_ = trace.Persistent(DType::kF32, 1, 1, Category::kData);
    Fill(trace, squared_sum_, 0);
  }
}

Tensor ParameterStore::Weight(int parameter) {
  const auto i = static_cast<size_t>(parameter);
  if (!options_.sharded) return states_[i].work;
  Entry& entry = entries_[i];
  if (!entry.gathered.defined()) {
    const Parameter& p = shape_.parameters[i];
    const int64_t padded = ShardElements(p) * options_.world;
    const Tensor full = trace_.Temporary(recipe_.compute, 1, padded, Category::kParameters);
    AllGather(trace_, states_[i].work, full, options_.world);
    entry.gathered = full.Cols(0, p.elements()).Reshape(p.rows, p.cols);
    in_use_.push_back(parameter);
  }
  return entry.gathered;
}

void ParameterStore::EndUse() {
  for (const int parameter : in_use_) entries_[static_cast<size_t>(parameter)].gathered = {};
  in_use_.clear();
}

Tensor ParameterStore::NewGradient(DType dtype, int64_t rows, int64_t cols) {
  return options_.keep_gradients ? trace_.Persistent(dtype, rows, cols, Category::kGradients)
                                 : trace_.Temporary(dtype, rows, cols, Category::kGradients);
}

ParameterAccess::Gradient ParameterStore::NextGradient(int parameter) {
  const auto i = static_cast<size_t>(parameter);
  const Parameter& p = shape_.parameters[i];
  Entry& entry = entries_[i];
  if (options_.sharded) {
    const bool first = !entry.full_gradient.defined();
    if (first) {
      entry.full_gradient = trace_.Temporary(DType::kF32, 1, ShardElements(p) * options_.world, Category::kGradients);
    }
    return {entry.full_gradient.Cols(0, p.elements()).Reshape(p.rows, p.cols), !first};
  }
  const bool first = !entry.has_gradient;
  if (first) states_[i].gradient = NewGradient(recipe_.gradients, p.rows, p.cols);
  entry.has_gradient = true;
  return {states_[i].gradient, !first};
}

void ParameterStore::GradientDone(int parameter) {
  const auto i = static_cast<size_t>(parameter);
  Entry& entry = entries_[i];
  if (options_.sharded) {
    const bool first = !entry.has_gradient;
    if (first) states_[i].gradient = NewGradient(recipe_.gradients, 1, states_[i].work.cols);
    ReduceScatter(trace_, entry.full_gradient, states_[i].gradient, options_.world, !first);
    entry.full_gradient = {};
    entry.has_gradient = true;
  }
  if (!last_micro_step_) return;
  if (waits()) {
    SquaredSum(trace_, states_[i].gradient, squared_sum_);
    waiting_.push_back(parameter);
  } else {
    Update(parameter, {});
  }
}

void ParameterStore::FinishStep() {
  if (!waits()) return;
  trace_.SetLayer(-1);
  trace_.SetPhase(Phase::kOptimizer);
  const Tensor scale = trace_.Temporary(DType::kF32, 1, 1, Category::kWorkspace);
  if (options_.loss_scale.defined()) {
    LossScale(trace_, squared_sum_, options_.loss_scale, grad_norm_, scale, options_.grad_clip);
  } else {
    ClipScale(trace_, squared_sum_, grad_norm_, scale, options_.grad_clip);
  }
  for (const int parameter : waiting_) Update(parameter, scale);
  waiting_.clear();
}

void ParameterStore::Update(int parameter, Tensor scale) {
  const ParameterState& state = states_[static_cast<size_t>(parameter)];
  const Phase phase = trace_.phase();
  trace_.SetPhase(Phase::kOptimizer);
  Adam(trace_, state.work, state.low, state.m, state.v, state.gradient, scale, options_.adam);
  trace_.SetPhase(phase);
}

}  // namespace ridgeline
