// Holds the parameters' state, hands out whole weights, takes gradients and records the optimizer's updates.
//
// Ranks have their own rows of the batch, and share the model in one of four ways:
//   none       every rank has all of it; gradients are averaged over the ranks (all-reduce) before the update
//   optimizer  every rank has the weights, and its part of moments and master weights: gradients are reduce-scattered,
//              and the weights it updated gathered (ZeRO-1: Rajbhandari et al., "ZeRO", 2020)
//   gradients  the same, and sums of several micro-steps are parts, too: gradients are reduce-scattered in each of them
//              (ZeRO-2)
//   full       every rank has its part of everything: weights are gathered for use and dropped, gradients are
//              reduce-scattered (FSDP: Zhao et al., "PyTorch FSDP", 2023)
//
// Gradients are reduced in fp32. What is moved at once is a group of parameters (ModelShape::groups), laid out as one
// flat array that is cut into equal parts, one a rank; the last may hold nothing but padding. Movement flies behind
// compute: weights are gathered while what is used before them computes, so two windows of weights (what is used
// between two calls of EndUse: a layer, say) live at once; a group's gradients are reduced during the backward pass of
// the group after it, and live until then.
//
// A weight that is kept as codes is whole on every rank and in a group of such alone. It is a number only while it is
// updated: its group is updated in a temporary, from the master weights or from the codes, and quantized again; the
// temporaries of two groups never live together. A layer with such weights is two groups, whose reductions fly
// together.
//
// With one micro-step and neither clipping nor loss scaling a parameter is updated as soon as its gradient is done, so
// gradients of more than two groups never live together. Otherwise they are kept to the end of the step.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/comm/collective.h"
#include "engine/device/trace.h"
#include "engine/model/linear.h"
#include "engine/model/parameter.h"
#include "engine/model/parameter_access.h"
#include "engine/ops/optimizer.h"
#include "engine/precision/recipe.h"

namespace ridgeline {

enum class ShardMode : uint8_t { kNone, kOptimizer, kGradients, kFull };
// Of RunSpec::shard, which must have been checked.
ShardMode ShardModeOf(std::string_view name);

// What this rank keeps of one parameter: elements [first, first + m.elements()) of it, as (rows, cols) where that is
// all of them, else as (1, n). Undefined where it keeps none.
struct ParameterState {
  int64_t first = 0;
  Tensor work;      // compute dtype; undefined where the weight is kept as codes
  Tensor master;    // what keeps the fp32 master weight, where there is one: the remainder of `work`, or all of it
  Tensor m, v;      // Adam's moments
  Tensor gradient;  // defined after the step program is recorded
  Tensor whole;     // the weight, (rows, cols) in compute dtype, where this rank keeps all of it; work is in it
  // The whole weight, (rows, cols), where it is kept as codes; and turned round where its columns have other scales
  // than its rows.
  QuantizedTensor rows, columns;

  bool quantized() const { return rows.codes.defined(); }
};

// The groups that are used in each window, in the order of the step.
using UseOrder = std::vector<std::vector<int>>;

struct ParameterStoreOptions {
  AdamAttrs adam;
  double grad_clip = 0;  // 0: none
  Tensor loss_scale;     // of a loss-scaled recipe (ops/optimizer.h); else undefined
  int64_t micro_steps = 1;
  ShardMode shard = ShardMode::kNone;
  int64_t world = 1;
  int64_t rank = 0;
  std::vector<QuantizedWeight> quantized;  // weights that are kept as codes; not where weights are gathered for use
  bool keep_gradients = false;             // to be read after the step (verification)
  UseOrder uses;                           // what a recording of the same step gave; empty: gather nothing ahead
};

class ParameterStore final : public ParameterAccess {
 public:
  ParameterStore(Trace& trace, const ModelShape& shape, const Recipe& recipe, const ParameterStoreOptions& options);

  Tensor Weight(int parameter) override;
  QuantizedTensor Codes(int parameter, bool as_it_lies) override;
  Gradient NextGradient(int parameter) override;
  void GradientDone(int parameter) override;
  void EndUse() override;

  void BeginMicroStep(int64_t micro_step) { last_micro_step_ = micro_step + 1 == options_.micro_steps; }
  // Records what is left: the gradient norm, clipping, updates, and the landing of what flies.
  void FinishStep();

  // values, fp32 = their largest over the ranks.
  void MaxOverRanks(Tensor values) {
    if (sharded()) flights_.MaxOverRanks(values);
  }

  const std::vector<ParameterState>& states() const { return states_; }
  Tensor grad_norm() const { return grad_norm_; }  // (1, 1) fp32; undefined where no update waits for it
  const UseOrder& uses() const { return uses_; }   // of gathered weights

 private:
  struct Group {
    std::vector<int> members;   // parameters
    int64_t size = 0;           // elements, padding included: world * part
    int64_t part = 0;           // of a rank
    int64_t updated = 0;        // by this rank: its part, or all
    Tensor whole;               // the weights, (1, size), where this rank keeps them whole
    Tensor work, master, m, v;  // of what this rank updates
    Tensor gathered;            // full: the weights, (1, size), while they are used or on their way
    std::optional<Flight> gathering;
    Tensor sum;               // of the gradients of this rank's rows, (1, size)
    Tensor gradient;          // what the update reads
    size_t members_done = 0;  // whose gradient is done in this micro-step
  };
  // Whether updates wait for all gradients: their norm decides.
  bool waits() const { return options_.grad_clip > 0 || options_.loss_scale.defined(); }
  struct Reduction {
    Flight flight;
    int group = 0;
    bool final = false;  // of the last micro-step
    int64_t layer = -1;
  };
  struct Waiting {
    int group = 0;
    int64_t layer = -1;  // whose they are
  };
  // Weights of a quantized group that were updated, (1, size), and are perhaps on their way.
  struct Update {
    Tensor weights;
    std::optional<Flight> gathering;
    int group = 0;
  };
  struct Range {
    int64_t first = 0;  // in the parameter
    int64_t count = 0;
    int64_t at = 0;  // in the group's updated tensors
  };

  bool sharded() const { return options_.world > 1; }
  Group& GroupOf(int parameter) { return groups_[static_cast<size_t>(group_of_[static_cast<size_t>(parameter)])]; }
  const Group& GroupOf(int parameter) const {
    return groups_[static_cast<size_t>(group_of_[static_cast<size_t>(parameter)])];
  }
  // nullptr: the weight is not kept as codes.
  const QuantizedWeight* QuantizedOf(int parameter) const;
  void AddGroup(const std::vector<int>& parameters);
  void AddCodes(int parameter);
  // The parameter in a tensor of its whole group, (rows, cols).
  Tensor ViewOf(int parameter, Tensor flat) const;
  // What of the parameter this rank updates, and in a tensor of what it updates of the group.
  Range Kept(int parameter) const;
  Tensor PartOf(int parameter, Tensor updated) const;
  Tensor OwnPart(const Group& group, Tensor whole) const {
    return group.updated < group.size ? whole.Cols(options_.rank * group.part, group.part) : whole;
  }
  void Gather(int group);
  Tensor NewGradient(DType dtype, int64_t elements);
  void NewSum(Group& group);
  // Padding is reduced and updated with the rest, and must stay zero.
  void FillPadding(const Group& group, Tensor flat);
  void Reduce(Group& group);
  void LandReductions();
  void Reduced(Group& group, int64_t layer);
  void UpdateWeights(Group& group, Tensor scale);
  void UpdateCodes(Group& group, Tensor scale);
  void QuantizeUpdated();

  Trace& trace_;
  const ModelShape& shape_;
  const Recipe& recipe_;
  ParameterStoreOptions options_;
  Flights flights_;
  std::vector<Group> groups_;
  std::vector<int> group_of_;       // of a parameter
  std::vector<int64_t> offset_of_;  // of a parameter in its group
  std::vector<bool> has_gradient_;  // of a parameter: something is in its place in `sum`
  std::vector<ParameterState> states_;
  UseOrder uses_;
  size_t window_ = 0;
  bool window_open_ = false;
  std::vector<Reduction> reducing_;  // of one layer
  std::optional<Update> updated_;    // quantized weights that are numbers yet
  std::vector<Flight> returning_;    // optimizer: updated weights on their way back
  std::vector<Waiting> waiting_;     // groups that are done, to be updated at the end of the step
  Tensor grad_norm_;
  Tensor squared_sum_;
  bool last_micro_step_ = true;
};

}  // namespace ridgeline
