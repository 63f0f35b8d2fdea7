#include "engine/shard/parameter_store.h"

#include <algorithm>

#include "engine/ops/elementwise.h"

namespace ridgeline {
namespace {

// Of parameters in a group and of a rank's part: whole cache lines and vectors in every dtype.
constexpr int64_t kAlignElements = 64;

int64_t Aligned(int64_t elements) { return (elements + kAlignElements - 1) / kAlignElements * kAlignElements; }

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

ShardMode ShardModeOf(std::string_view name) {
  return name == "full" ? ShardMode::kFull : name == "optimizer" ? ShardMode::kOptimizer : ShardMode::kNone;
}

ParameterStore::ParameterStore(Trace& trace, const ModelShape& shape, const Recipe& recipe,
                               const ParameterStoreOptions& options)
    : trace_(trace),
      shape_(shape),
      recipe_(recipe),
      options_(options),
      flights_(trace, options.world),
      group_of_(shape.parameters.size()),
      offset_of_(shape.parameters.size()),
      has_gradient_(shape.parameters.size()),
      states_(shape.parameters.size()) {
  if (sharded()) {
    for (const std::vector<int>& group : shape.groups) AddGroup(group);
  } else {
    for (int parameter = 0; parameter < static_cast<int>(states_.size()); ++parameter) AddGroup({parameter});
  }
  if (waits()) {
    grad_norm_ = trace.Persistent(DType::kF32, 1, 1, Category::kData);
    squared_sum_ = trace.Persistent(DType::kF32, 1, 1, Category::kData);
    Fill(trace, squared_sum_, 0);
  }
}

void ParameterStore::AddGroup(const std::vector<int>& parameters) {
  Group group;
  for (const int parameter : parameters) {
    const auto p = static_cast<size_t>(parameter);
    group_of_[p] = static_cast<int>(groups_.size());
    offset_of_[p] = sharded() ? Aligned(group.size) : group.size;
    group.size = offset_of_[p] + shape_.parameters[p].elements();
  }
  group.members = parameters;
  group.part = group.size;
  if (sharded()) {
    group.part = Aligned((group.size + options_.world - 1) / options_.world);
    group.size = group.part * options_.world;
  }
  if (options_.shard == ShardMode::kFull && sharded()) {
    group.work = trace_.Persistent(recipe_.compute, 1, group.part, Category::kParameters);
  } else {
    group.whole = trace_.Persistent(recipe_.compute, 1, group.size, Category::kParameters);
    group.work = options_.shard == ShardMode::kOptimizer ? group.whole.Cols(options_.rank * group.part, group.part)
                                                         : group.whole;
  }
  const int64_t updated = group.work.cols;
  if (recipe_.master != Master::kNone) {
    const DType dtype = recipe_.master == Master::kWhole ? DType::kF32 : DType::kI16;
    group.low = trace_.Persistent(dtype, 1, updated, Category::kParameters);
  }
  group.m = trace_.Persistent(recipe_.moments, 1, updated, Category::kOptimizer);
  group.v = trace_.Persistent(recipe_.moments, 1, updated, Category::kOptimizer);
  groups_.push_back(group);
  for (const int parameter : parameters) {
    ParameterState& state = states_[static_cast<size_t>(parameter)];
    state.first = Kept(parameter).first;
    state.work = PartOf(parameter, group.work);
    state.low = PartOf(parameter, group.low);
    state.m = PartOf(parameter, group.m);
    state.v = PartOf(parameter, group.v);
    if (group.whole.defined()) state.whole = ViewOf(parameter, group.whole);
  }
}

Tensor ParameterStore::ViewOf(int parameter, Tensor flat) const {
  const Parameter& p = shape_.parameters[static_cast<size_t>(parameter)];
  return flat.Cols(offset_of_[static_cast<size_t>(parameter)], p.elements()).Reshape(p.rows, p.cols);
}

ParameterStore::Range ParameterStore::Kept(int parameter) const {
  const Group& group = GroupOf(parameter);
  const int64_t begin = group.work.cols < group.size ? options_.rank * group.part : 0;  // in the group
  const int64_t offset = offset_of_[static_cast<size_t>(parameter)];
  const int64_t elements = shape_.parameters[static_cast<size_t>(parameter)].elements();
  const int64_t first = std::clamp<int64_t>(begin - offset, 0, elements);
  const int64_t last = std::clamp<int64_t>(begin + group.work.cols - offset, 0, elements);
  return {first, last - first, offset + first - begin};
}

Tensor ParameterStore::PartOf(int parameter, Tensor updated) const {
  const Range kept = Kept(parameter);
  if (!updated.defined() || kept.count == 0) return {};
  const Parameter& p = shape_.parameters[static_cast<size_t>(parameter)];
  const Tensor part = updated.Cols(kept.at, kept.count);
  return kept.count == p.elements() ? part.Reshape(p.rows, p.cols) : part;
}

Tensor ParameterStore::Weight(int parameter) {
  const Group& group = GroupOf(parameter);
  if (group.whole.defined()) return ViewOf(parameter, group.whole);
  const int id = group_of_[static_cast<size_t>(parameter)];
  if (!window_open_) {
    window_open_ = true;
    uses_.emplace_back();
    for (size_t window = window_; window < std::min(window_ + 2, options_.uses.size()); ++window) {
      for (const int ahead : options_.uses[window]) Gather(ahead);
    }
  }
  if (!Contains(uses_.back(), id)) uses_.back().push_back(id);
  Gather(id);
  if (Group& gathered = groups_[static_cast<size_t>(id)]; gathered.gathering) {
    flights_.Land(*gathered.gathering);
    gathered.gathering.reset();
  }
  return ViewOf(parameter, group.gathered);
}

void ParameterStore::Gather(int id) {
  Group& group = groups_[static_cast<size_t>(id)];
  if (group.gathered.defined()) return;
  group.gathered = trace_.Temporary(recipe_.compute, 1, group.size, Category::kParameters);
  group.gathering = flights_.AllGather(group.work, group.gathered);
}

// What the next window uses stays, or is on its way.
void ParameterStore::EndUse() {
  if (!window_open_) return;
  window_open_ = false;
  ++window_;
  for (int id = 0; id < static_cast<int>(groups_.size()); ++id) {
    const bool used_next = window_ < options_.uses.size() && Contains(options_.uses[window_], id);
    if (!used_next) groups_[static_cast<size_t>(id)].gathered = {};
  }
}

Tensor ParameterStore::NewGradient(DType dtype, int64_t elements) {
  return options_.keep_gradients ? trace_.Persistent(dtype, 1, elements, Category::kGradients)
                                 : trace_.Temporary(dtype, 1, elements, Category::kGradients);
}

ParameterAccess::Gradient ParameterStore::NextGradient(int parameter) {
  Group& group = GroupOf(parameter);
  if (!group.sum.defined()) NewSum(group);
  const auto p = static_cast<size_t>(parameter);
  const bool accumulate = has_gradient_[p];
  has_gradient_[p] = true;
  return {ViewOf(parameter, group.sum), accumulate};
}

void ParameterStore::NewSum(Group& group) {
  if (!sharded()) {
    group.sum = NewGradient(recipe_.gradients, group.size);
    return;
  }
  group.sum = options_.shard == ShardMode::kNone ? NewGradient(DType::kF32, group.size)  // the update reads it
                                                 : trace_.Temporary(DType::kF32, 1, group.size, Category::kGradients);
  // Padding is reduced and updated with the rest, and must stay zero: it would count in the gradient norm.
  int64_t end = 0;
  const auto fill_to = [&](int64_t begin) {
    if (begin > end) Fill(trace_, group.sum.Cols(end, begin - end), 0);
  };
  for (const int parameter : group.members) {
    const auto p = static_cast<size_t>(parameter);
    fill_to(offset_of_[p]);
    end = offset_of_[p] + shape_.parameters[p].elements();
  }
  fill_to(group.size);
}

void ParameterStore::GradientDone(int parameter) {
  Group& group = GroupOf(parameter);
  if (++group.members_done < group.members.size()) return;
  group.members_done = 0;
  if (last_micro_step_ || options_.shard == ShardMode::kFull) Reduce(group);
}

void ParameterStore::Reduce(Group& group) {
  if (!sharded()) {
    if (!last_micro_step_) return;
    group.gradient = group.sum;
    return Reduced(group);
  }
  Reduction reduction{{}, group_of_[static_cast<size_t>(group.members.front())], last_micro_step_};
  if (options_.shard == ShardMode::kNone) {
    group.gradient = group.sum;
    reduction.flight = flights_.AllReduce(group.sum);
  } else {
    const bool first = !group.gradient.defined();
    if (first) group.gradient = NewGradient(recipe_.gradients, group.part);
    reduction.flight = flights_.ReduceScatter(group.sum, group.gradient, !first);
    group.sum = {};
    for (const int parameter : group.members) has_gradient_[static_cast<size_t>(parameter)] = false;
  }
  LandReduction();  // the one before, which had the time of this group's backward pass
  reducing_ = reduction;
}

void ParameterStore::LandReduction() {
  if (!reducing_) return;
  flights_.Land(reducing_->flight);
  if (reducing_->final) Reduced(groups_[static_cast<size_t>(reducing_->group)]);
  reducing_.reset();
}

void ParameterStore::Reduced(Group& group) {
  if (waits()) {
    SquaredSum(trace_, group.gradient, squared_sum_);
    waiting_.push_back(group_of_[static_cast<size_t>(group.members.front())]);
  } else {
    Update(group, {});
  }
}

void ParameterStore::FinishStep() {
  LandReduction();
  if (waits()) {
    trace_.SetLayer(-1);
    trace_.SetPhase(Phase::kOptimizer);
    if (sharded() && options_.shard != ShardMode::kNone) flights_.SumOverRanks(squared_sum_);
    const Tensor scale = trace_.Temporary(DType::kF32, 1, 1, Category::kWorkspace);
    if (options_.loss_scale.defined()) {
      LossScale(trace_, squared_sum_, options_.loss_scale, grad_norm_, scale, options_.grad_clip);
    } else {
      ClipScale(trace_, squared_sum_, grad_norm_, scale, options_.grad_clip);
    }
    for (const int id : waiting_) Update(groups_[static_cast<size_t>(id)], scale);
    waiting_.clear();
  }
  for (const Flight& flight : returning_) flights_.Land(flight);
  returning_.clear();
  for (size_t p = 0; p < states_.size(); ++p) {
    const int parameter = static_cast<int>(p);
    states_[p].gradient = PartOf(parameter, GroupOf(parameter).gradient);
  }
}

void ParameterStore::Update(Group& group, Tensor scale) {
  const Phase phase = trace_.phase();
  trace_.SetPhase(Phase::kOptimizer);
  Adam(trace_, group.work, group.low, group.m, group.v, group.gradient, scale, options_.adam);
  if (group.whole.defined() && group.work.cols < group.size) {
    returning_.push_back(flights_.AllGather(group.work, group.whole));
  }
  trace_.SetPhase(phase);
}

}  // namespace ridgeline
