#include "engine/shard/parameter_store.h"

#include <algorithm>

#include "engine/ops/elementwise.h"
#include "engine/ops/quantize.h"

namespace ridgeline::engine {
namespace {

// Alignment of parameters in a group, of a rank's part, and of what a replica reduces of it: whole cache lines and
// vectors in every dtype.
constexpr int64_t kAlignElements = 64;

int64_t Aligned(int64_t elements, int64_t pieces = 1) {
  const int64_t multiple = kAlignElements * pieces;
  return (elements + multiple - 1) / multiple * multiple;
}

// out = x + y; out may be either.
void AddElements(Trace& trace, Tensor x, Tensor y, Tensor out) { DropoutAdd(trace, x, y, out, 0, {}); }

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

ParameterStore::ParameterStore(Trace& trace, Flights& flights, const ModelShape& shape, const Recipe& recipe,
                               const ParameterStoreOptions& options)
    : trace_(trace),
      shape_(shape),
      recipe_(recipe),
      options_(options),
      flights_(flights),
      shard_ranks_(flights.mesh().size(MeshAxis::kShard)),
      shard_place_(flights.mesh().PlaceOf(options.rank, MeshAxis::kShard)),
      replicas_(flights.mesh().size(MeshAxis::kReplica)),
      tensor_ranks_(flights.mesh().size(MeshAxis::kTensor)),
      tensor_place_(flights.mesh().PlaceOf(options.rank, MeshAxis::kTensor)),
      group_of_(shape.parameters.size()),
      offset_of_(shape.parameters.size()),
      has_gradient_(shape.parameters.size()),
      states_(shape.parameters.size()) {
  if (moves()) {
    for (const std::vector<int>& group : shape.groups) {
      std::vector<int> quantized;
      std::vector<int> others;
      for (const int parameter : group) (QuantizedOf(parameter) != nullptr ? quantized : others).push_back(parameter);
      for (const auto& part : {quantized, others}) {
        if (!part.empty()) AddGroup(part);
      }
    }
  } else {
    for (int parameter = 0; parameter < static_cast<int>(states_.size()); ++parameter) AddGroup({parameter});
  }
  if (waits()) {
    grad_norm_ = trace.Persistent(DType::kF32, 1, 1, Category::kData);
    squared_sum_ = trace.Persistent(DType::kF32, 1, 1, Category::kData);
    Fill(trace, squared_sum_, 0);
    if (tensor_ranks_ > 1) {
      aside_ = trace.Persistent(DType::kF32, 1, 1, Category::kData);
      Fill(trace, aside_, 0);
    }
  }
}

const QuantizedWeight* ParameterStore::QuantizedOf(int parameter) const {
  for (const QuantizedWeight& weight : options_.quantized) {
    if (weight.parameter == parameter) return &weight;
  }
  return nullptr;
}

void ParameterStore::AddGroup(const std::vector<int>& parameters) {
  Group group;
  for (const int parameter : parameters) {
    const auto p = static_cast<size_t>(parameter);
    group_of_[p] = static_cast<int>(groups_.size());
    offset_of_[p] = moves() ? Aligned(group.size) : group.size;
    group.size = offset_of_[p] + ShareOf(parameter).elements();
  }
  group.members = parameters;
  group.part = group.size;
  if (moves()) {
    group.part = Aligned((group.size + shard_ranks_ - 1) / shard_ranks_, replicas_);
    group.size = group.part * shard_ranks_;
  }
  const bool quantized = QuantizedOf(parameters.front()) != nullptr;
  if (quantized) {
    for (const int parameter : parameters) AddCodes(parameter);
  } else if (options_.shard == ShardMode::kFull && in_parts()) {
    group.work = trace_.Persistent(recipe_.compute, 1, group.part, Category::kParameters);
  } else {
    group.whole = trace_.Persistent(recipe_.compute, 1, group.size, Category::kParameters);
    group.work = OwnPart(group, group.whole);
  }
  if (recipe_.master != Master::kNone) {
    const DType dtype = quantized || recipe_.master == Master::kWhole ? DType::kF32 : DType::kI16;
    group.master = trace_.Persistent(dtype, 1, group.part, Category::kParameters);
  }
  group.m = trace_.Persistent(recipe_.moments, 1, group.part, Category::kOptimizer);
  group.v = trace_.Persistent(recipe_.moments, 1, group.part, Category::kOptimizer);
  groups_.push_back(group);
  for (const int parameter : parameters) {
    ParameterState& state = states_[static_cast<size_t>(parameter)];
    state.first = Kept(parameter).first;
    state.work = PartOf(parameter, group.work);
    state.master = PartOf(parameter, group.master);
    state.m = PartOf(parameter, group.m);
    state.v = PartOf(parameter, group.v);
    if (group.whole.defined()) state.whole = ViewOf(parameter, group.whole);
  }
}

void ParameterStore::AddCodes(int parameter) {
  const Share& share = ShareOf(parameter);
  const Quantizer& quantizer = QuantizedOf(parameter)->quantizer;
  ParameterState& state = states_[static_cast<size_t>(parameter)];
  state.rows = NewQuantized(trace_, quantizer, share.rows(), share.cols(), Category::kParameters, true);
  if (quantizer.scaling == Scaling::kBlock32) {
    state.columns = NewQuantized(trace_, quantizer, share.cols(), share.rows(), Category::kParameters, true);
  }
}

Tensor ParameterStore::ViewOf(int parameter, Tensor flat) const {
  const Share& share = ShareOf(parameter);
  return flat.Cols(offset_of_[static_cast<size_t>(parameter)], share.elements()).Reshape(share.rows(), share.cols());
}

ParameterStore::Range ParameterStore::Kept(int parameter) const {
  const Group& group = GroupOf(parameter);
  const int64_t begin = shard_place_ * group.part;  // in the group
  const int64_t offset = offset_of_[static_cast<size_t>(parameter)];
  const int64_t elements = ShareOf(parameter).elements();
  const int64_t first = std::clamp<int64_t>(begin - offset, 0, elements);
  const int64_t last = std::clamp<int64_t>(begin + group.part - offset, 0, elements);
  return {first, last - first, offset + first - begin};
}

Tensor ParameterStore::PartOf(int parameter, Tensor part) const {
  const Range kept = Kept(parameter);
  if (!part.defined() || kept.count == 0) return {};
  const Share& share = ShareOf(parameter);
  const Tensor own = part.Cols(kept.at, kept.count);
  return kept.count == share.elements() ? own.Reshape(share.rows(), share.cols()) : own;
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

QuantizedTensor ParameterStore::Codes(int parameter, bool as_it_lies) {
  const ParameterState& state = states_[static_cast<size_t>(parameter)];
  if (!state.quantized() || as_it_lies) return state.rows;
  if (state.columns.codes.defined()) return state.columns;
  return Transposed(trace_, state.rows, Category::kParameters);
}

void ParameterStore::Gather(int id) {
  Group& group = groups_[static_cast<size_t>(id)];
  if (group.gathered.defined()) return;
  group.gathered = trace_.Temporary(recipe_.compute, 1, group.size, Category::kParameters);
  group.gathering = flights_.AllGather(MeshAxis::kShard, group.work, group.gathered);
}

// Weights that the next window uses stay, or are in flight.
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
  if (!moves()) {
    // Sums over ranks are fp32.
    const bool is_term = std::ranges::any_of(group.members, [&](int p) { return Copies(p).count > 0; });
    group.sum = NewGradient(is_term ? DType::kF32 : recipe_.gradients, group.size);
    return;
  }
  group.sum = in_parts() ? trace_.Temporary(DType::kF32, 1, group.size, Category::kGradients)
                         : NewGradient(DType::kF32, group.size);  // the update reads it
  FillPadding(group, group.sum);                                  // it would count in the gradient norm
}

void ParameterStore::FillPadding(const Group& group, Tensor flat) {
  int64_t end = 0;
  const auto fill_to = [&](int64_t begin) {
    if (begin > end) Fill(trace_, flat.Cols(end, begin - end), 0);
  };
  for (const int parameter : group.members) {
    const auto p = static_cast<size_t>(parameter);
    fill_to(offset_of_[p]);
    end = offset_of_[p] + ShareOf(parameter).elements();
  }
  fill_to(group.size);
}

// Returns the elements of the share whose gradients are terms of a sum over ranks that have the same ones.
Slice ParameterStore::Copies(int parameter) const {
  const Parameter& p = shape_.parameters[static_cast<size_t>(parameter)];
  if (tensor_ranks_ == 1) return {};
  if (p.role == Role::kNorm) return {0, options_.splits_tokens ? p.share.elements() : 0};
  return {p.share.copied.first * p.share.cols(), p.share.copied.count * p.share.cols()};
}

void ParameterStore::SumCopies(int parameter) {
  const auto [first, count] = Copies(parameter);
  if (count == 0) return;
  Group& group = GroupOf(parameter);
  SumOfCopies& sum = group.copies.emplace_back();
  sum.gradient = group.sum.Cols(offset_of_[static_cast<size_t>(parameter)] + first, count);
  if (shape_.parameters[static_cast<size_t>(parameter)].role == Role::kNorm) {
    sum.flight = flights_.AllReduce(MeshAxis::kTensor, sum.gradient, Reduction::kSum);
    return;
  }
  // The ranks that have the same are no group of the mesh.
  sum.count = ShareOf(parameter).copies;
  sum.first = tensor_place_ / sum.count * sum.count;
  const Tensor all = trace_.Temporary(DType::kF32, 1, tensor_ranks_ * count, Category::kGradients);
  sum.flight = flights_.AllGather(MeshAxis::kTensor, sum.gradient, all);
  sum.gathered = all.Reshape(tensor_ranks_, count);
}

void ParameterStore::LandCopies(Group& group) {
  for (const SumOfCopies& sum : group.copies) {
    flights_.Land(sum.flight);
    for (int64_t i = 1; i < sum.count; ++i) {
      const Tensor before = i == 1 ? sum.gathered.Rows(sum.first, 1) : sum.gradient;
      AddElements(trace_, before, sum.gathered.Rows(sum.first + i, 1), sum.gradient);
    }
  }
  group.copies.clear();
}

void ParameterStore::GradientDone(int parameter) {
  Group& group = GroupOf(parameter);
  const bool keeps_parts = options_.shard == ShardMode::kGradients || options_.shard == ShardMode::kFull;
  const bool reduces = last_micro_step_ || (in_parts() && keeps_parts);
  if (reduces) SumCopies(parameter);
  if (++group.members_done < group.members.size()) return;
  group.members_done = 0;
  if (!reduces) return;
  if (moves()) {
    ReduceAlongData(group);
  } else {
    group.gradient = group.sum;
    if (group.copies.empty()) return Reduced(group, trace_.layer());
    BeginReduction(group, {});
  }
}

void ParameterStore::ReduceAlongData(Group& group) {
  LandCopies(group);
  if (!in_parts()) {
    group.gradient = group.sum;
    return BeginReduction(group, flights_.AllReduce(MeshAxis::kReplica, group.sum));
  }
  const bool first = !group.gradient.defined();
  if (first) group.gradient = NewGradient(replicas_ > 1 ? DType::kF32 : recipe_.gradients, group.part);
  const Flight flight = flights_.ReduceScatter(MeshAxis::kShard, group.sum, group.gradient, !first);
  group.sum = {};
  for (const int parameter : group.members) has_gradient_[static_cast<size_t>(parameter)] = false;
  BeginReduction(group, flight);
}

void ParameterStore::BeginReduction(const Group& group, const Flight& flight) {
  const Reducing reduction{flight, group_of_[static_cast<size_t>(group.members.front())], last_micro_step_,
                           trace_.layer()};
  // The earlier reductions had the time of this group's backward pass. A layer's groups are done all at once.
  const bool with_last = !reducing_.empty() && reduction.layer >= 0 && reducing_.back().layer == reduction.layer &&
                         reducing_.back().group != reduction.group;
  if (!with_last) LandReductions();
  reducing_.push_back(reduction);
}

void ParameterStore::LandReductions() {
  LandAverages();
  for (const Reducing& reduction : reducing_) {
    Group& group = groups_[static_cast<size_t>(reduction.group)];
    LandCopies(group);
    flights_.Land(reduction.flight);
    if (!reduction.final) continue;
    if (in_parts() && replicas_ > 1) {
      averaging_.push_back(reduction);
      averaging_.back().flight = flights_.AllReduce(MeshAxis::kReplica, group.gradient);
    } else {
      Reduced(group, reduction.layer);
    }
  }
  reducing_.clear();
}

void ParameterStore::LandAverages() {
  for (const Reducing& average : averaging_) {
    flights_.Land(average.flight);
    Reduced(groups_[static_cast<size_t>(average.group)], average.layer);
  }
  averaging_.clear();
}

void ParameterStore::Reduced(Group& group, int64_t layer) {
  if (waits()) {
    if (tensor_ranks_ == 1) SquaredSum(trace_, group.gradient, squared_sum_);
    waiting_.push_back({group_of_[static_cast<size_t>(group.members.front())], layer});
  } else {
    UpdateWeights(group, {});
  }
}

void ParameterStore::AddSquares(const Group& group) {
  for (const int parameter : group.members) {
    const Parameter& p = shape_.parameters[static_cast<size_t>(parameter)];
    const bool all_alike = p.role == Role::kNorm || p.role == Role::kReplicated;
    const int64_t begin = all_alike ? 0 : p.share.copied.first * p.share.cols();
    const int64_t end = all_alike ? p.share.elements() : begin + p.share.copied.count * p.share.cols();
    const bool counts = tensor_place_ % (all_alike ? tensor_ranks_ : p.share.copies) == 0;
    const Range kept = Kept(parameter);
    const auto add = [&](int64_t first, int64_t last, Tensor sum) {
      first = std::max(first, kept.first);
      last = std::min(last, kept.first + kept.count);
      if (first < last) SquaredSum(trace_, group.gradient.Cols(kept.at + first - kept.first, last - first), sum);
    };
    add(0, begin, squared_sum_);
    add(begin, end, counts ? squared_sum_ : aside_);
    add(end, p.share.elements(), squared_sum_);
  }
}

void ParameterStore::FinishStep() {
  LandReductions();
  LandAverages();
  if (waits()) {
    trace_.SetPhase(Phase::kOptimizer);
    for (const Waiting& waiting : waiting_) {
      if (tensor_ranks_ == 1) break;  // Reduced has added them
      trace_.SetLayer(waiting.layer);
      AddSquares(groups_[static_cast<size_t>(waiting.group)]);
    }
    trace_.SetLayer(-1);
    flights_.SumOverRanks(MeshAxis::kTensor | MeshAxis::kShard, squared_sum_);
    const Tensor scale = trace_.Temporary(DType::kF32, 1, 1, Category::kWorkspace);
    if (options_.loss_scale.defined()) {
      LossScale(trace_, squared_sum_, options_.loss_scale, grad_norm_, scale, options_.grad_clip);
    } else {
      ClipScale(trace_, squared_sum_, grad_norm_, scale, options_.grad_clip);
    }
    for (const Waiting& waiting : waiting_) {
      trace_.SetLayer(waiting.layer);
      UpdateWeights(groups_[static_cast<size_t>(waiting.group)], scale);
    }
    trace_.SetLayer(-1);
    waiting_.clear();
  }
  QuantizeUpdated();
  for (const Flight& flight : returning_) flights_.Land(flight);
  returning_.clear();
  for (size_t p = 0; p < states_.size(); ++p) {
    const int parameter = static_cast<int>(p);
    states_[p].gradient = PartOf(parameter, GroupOf(parameter).gradient);
  }
}

void ParameterStore::UpdateWeights(Group& group, Tensor scale) {
  const Phase phase = trace_.phase();
  trace_.SetPhase(Phase::kOptimizer);
  if (!group.work.defined()) {
    UpdateCodes(group, scale);
  } else {
    Adam(trace_, group.work, group.master, group.m, group.v, group.gradient, scale, options_.adam, options_.loss_scale);
    if (group.whole.defined() && in_parts()) {
      returning_.push_back(flights_.AllGather(MeshAxis::kShard, group.work, group.whole));
    }
  }
  trace_.SetPhase(phase);
}

// With a master weight, the numbers are in the compute dtype; else they are the values of the codes.
void ParameterStore::UpdateCodes(Group& group, Tensor scale) {
  QuantizeUpdated();  // the previous group's, which has had time to be gathered
  const bool has_master = group.master.defined();
  const DType dtype = has_master ? recipe_.compute : DType::kF32;
  const Tensor weights = trace_.Temporary(dtype, 1, group.size, Category::kWorkspace);
  if (!has_master) {
    FillPadding(group, weights);
    for (const int parameter : group.members) {
      Dequantize(trace_, states_[static_cast<size_t>(parameter)].rows, ViewOf(parameter, weights));
    }
  }
  const Tensor own = OwnPart(group, weights);
  Adam(trace_, own, group.master, group.m, group.v, group.gradient, scale, options_.adam, options_.loss_scale);
  updated_ = Update{weights, {}, group_of_[static_cast<size_t>(group.members.front())]};
  if (in_parts()) {
    updated_->gathering = flights_.AllGather(MeshAxis::kShard, own, weights);
  } else {
    QuantizeUpdated();
  }
}

void ParameterStore::QuantizeUpdated() {
  if (!updated_) return;
  const Phase phase = trace_.phase();
  trace_.SetPhase(Phase::kOptimizer);
  if (updated_->gathering) flights_.Land(*updated_->gathering);
  for (const int parameter : groups_[static_cast<size_t>(updated_->group)].members) {
    const ParameterState& state = states_[static_cast<size_t>(parameter)];
    const QuantizedWeight& weight = *QuantizedOf(parameter);
    Quantize(trace_, ViewOf(parameter, updated_->weights), &state.rows,
             state.columns.codes.defined() ? &state.columns : nullptr, weight.delayed, {weight.stream});
  }
  trace_.SetPhase(phase);
  updated_.reset();
}

}  // namespace ridgeline::engine
