// Holds the parameters' state, hands out whole weights, takes gradients and records the optimizer's updates.
//
// Data-parallel ranks have their own rows of the batch, and share the model in one of four ways:
//   none       every rank has all of it; gradients are averaged over the ranks (all-reduce) before the update
//   optimizer  every rank has the weights, and its part of moments and master weights: gradients are reduce-scattered,
//              and the updated weights are gathered (ZeRO-1: Rajbhandari et al., "ZeRO", 2020)
//   gradients  the same, and sums over several micro-steps are parts, too: gradients are reduce-scattered in each of
//              them (ZeRO-2)
//   full       every rank has its part of everything: weights are gathered for use and dropped, gradients are
//              reduce-scattered (FSDP: Zhao et al., "PyTorch FSDP", 2023)
//
// With several groups of ranks that share it (HSDP), parts go to the ranks along the shard axis, and each group has a
// copy: the parts of gradients are averaged along the replica axis, in fp32, when the last micro-step's are reduced.
//
// Gradients are reduced in fp32. A group of parameters (ModelShape::groups) moves at once. It is laid out as one flat
// array that is cut into equal parts, one a rank of the shard axis; the last may hold nothing but padding. Movement
// overlaps with computation. Weights are gathered while the ones used before them compute, so two windows of weights
// live at once. (A window is what is used between two calls of EndUse, such as a layer.) A group's gradients are
// reduced during the backward pass of the group after it, and live until then.
//
// A weight that is kept as codes is whole on every rank, and its group has only such weights. It exists as numbers only
// during its update: its group is updated in a temporary, from the master weights or from the codes, and quantized
// again. The temporaries of two groups never live at once. A layer with such weights is two groups, whose reductions
// fly together.
//
// Ranks along the tensor axis have shares of the parameters (Parameter::share). What several of them have alike has the
// same gradient on all: gradients that are terms of a sum over the axis, as the norms' are, are summed before they go
// along the data axes. In the gradients' norm it counts on one rank.
//
// With one micro-step and neither clipping nor loss scaling, a parameter is updated as soon as its gradient is done. So
// the gradients of more than two groups never live at once, and of a third its part in HSDP. Otherwise they are kept
// until the end of the step.
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

namespace ridgeline::engine {

// What this rank keeps of its share of a parameter: elements [first, first + m.elements()) of the share, as (rows,
// cols) if that is all of them, else as (1, n). Undefined if this rank keeps none.
struct ParameterState {
  int64_t first = 0;
  Tensor work;      // compute dtype; undefined if the weight is kept as codes
  Tensor master;    // keeps the fp32 master weight, if there is one: the remainder of `work`, or all of it
  Tensor m, v;      // Adam's moments
  Tensor gradient;  // defined after the step program is recorded
  Tensor whole;     // the weight, (rows, cols) in compute dtype, if this rank keeps all of it; work is in it
  // The whole weight, (rows, cols), if it is kept as codes; and transposed, if its columns have other scales than its
  // rows.
  QuantizedTensor rows, columns;

  bool quantized() const { return rows.codes.defined(); }
};

// The groups used in each window, in the order of the step.
using UseOrder = std::vector<std::vector<int>>;

struct ParameterStoreOptions {
  AdamAttrs adam;
  double grad_clip = 0;  // 0: none
  Tensor loss_scale;     // for a loss-scaled recipe (ops/optimizer.h); else undefined
  int64_t micro_steps = 1;
  ShardMode shard = ShardMode::kNone;
  bool splits_tokens = false;              // ranks along the tensor axis have their own tokens in the norms
  int64_t rank = 0;                        // of all ranks
  std::vector<QuantizedWeight> quantized;  // weights that are kept as codes; none if weights are gathered for use
  bool keep_gradients = false;             // to be read after the step (verification)
  UseOrder uses;                           // the result of recording the same step; empty: gather nothing ahead
};

class ParameterStore final : public ParameterAccess {
 public:
  // `shape`: as the rank has it. References must outlive it.
  ParameterStore(Trace& trace, Flights& flights, const ModelShape& shape, const Recipe& recipe,
                 const ParameterStoreOptions& options);

  Tensor Weight(int parameter) override;
  QuantizedTensor Codes(int parameter, bool as_it_lies) override;
  Gradient NextGradient(int parameter) override;
  void GradientDone(int parameter) override;
  void EndUse() override;

  void BeginMicroStep(int64_t micro_step) { last_micro_step_ = micro_step + 1 == options_.micro_steps; }
  // Records the rest: the gradient norm, clipping, updates, and the landing of all flights.
  void FinishStep();

  // values, fp32 = their maximum over the ranks.
  void MaxOverRanks(Tensor values) { flights_.MaxOverRanks(kDataAxes | MeshAxis::kTensor, values); }

  const std::vector<ParameterState>& states() const { return states_; }
  Tensor grad_norm() const { return grad_norm_; }  // (1, 1) fp32; undefined if no update waits for it
  const UseOrder& uses() const { return uses_; }   // of gathered weights

 private:
  // Gradients of what several ranks along the tensor axis have alike, on their way to their sum.
  struct SumOfCopies {
    Flight flight;
    Tensor gradient;    // fp32, of this rank, and then the sum
    Tensor gathered;    // (ranks, n): those of all ranks; undefined if the flight adds them up
    int64_t first = 0;  // of the ranks that have the same
    int64_t count = 0;
  };
  struct Group {
    std::vector<int> members;   // parameters
    int64_t size = 0;           // elements, padding included: shard_ranks_ * part
    int64_t part = 0;           // elements that this rank updates
    Tensor whole;               // the weights, (1, size), if this rank keeps them whole
    Tensor work, master, m, v;  // of this rank's part
    Tensor gathered;            // full: the weights, (1, size), while in use or in flight
    std::optional<Flight> gathering;
    Tensor sum;                       // of the gradients of this rank's rows, (1, size)
    Tensor gradient;                  // read by the update
    size_t members_done = 0;          // members whose gradient is done in this micro-step
    std::vector<SumOfCopies> copies;  // of members that are done
  };
  // Whether updates wait for all gradients, because their norm decides.
  bool waits() const { return options_.grad_clip > 0 || options_.loss_scale.defined(); }
  struct Reducing {
    Flight flight;  // along a data axis
    int group = 0;
    bool final = false;  // of the last micro-step
    int64_t layer = -1;
  };
  struct Waiting {
    int group = 0;
    int64_t layer = -1;  // the layer of the gradients
  };
  // Updated weights of a quantized group, (1, size), perhaps in flight.
  struct Update {
    Tensor weights;
    std::optional<Flight> gathering;
    int group = 0;
  };
  struct Range {
    int64_t first = 0;  // in the parameter
    int64_t count = 0;
    int64_t at = 0;  // in the tensors of this rank's part of the group
  };

  // Whether parameters move in groups.
  bool moves() const { return shard_ranks_ * replicas_ > 1; }
  bool in_parts() const { return shard_ranks_ > 1; }
  Group& GroupOf(int parameter) { return groups_[static_cast<size_t>(group_of_[static_cast<size_t>(parameter)])]; }
  const Group& GroupOf(int parameter) const {
    return groups_[static_cast<size_t>(group_of_[static_cast<size_t>(parameter)])];
  }
  const Share& ShareOf(int parameter) const { return shape_.parameters[static_cast<size_t>(parameter)].share; }
  Slice Copies(int parameter) const;
  // Returns nullptr if the weight is not kept as codes.
  const QuantizedWeight* QuantizedOf(int parameter) const;
  void AddGroup(const std::vector<int>& parameters);
  void AddCodes(int parameter);
  // Returns the parameter's view, (rows, cols), in a tensor of its whole group.
  Tensor ViewOf(int parameter, Tensor flat) const;
  // Returns the range of the parameter that this rank updates, and its view in a tensor of this rank's part of the
  // group.
  Range Kept(int parameter) const;
  Tensor PartOf(int parameter, Tensor part) const;
  Tensor OwnPart(const Group& group, Tensor whole) const { return whole.Cols(shard_place_ * group.part, group.part); }
  void Gather(int group);
  Tensor NewGradient(DType dtype, int64_t elements);
  void NewSum(Group& group);
  // Padding is reduced and updated with the rest, and must stay zero.
  void FillPadding(const Group& group, Tensor flat);
  // Begins the sums along the tensor axis of a gradient.
  void SumCopies(int parameter);
  void LandCopies(Group& group);
  // Adds the squares of the group's gradients to squared_sum_, or aside if another rank counts them, since all ranks'
  // plans must have one size. Ranks along the shard axis have different pieces, so it runs where no plan has its peak.
  void AddSquares(const Group& group);
  // Begins to reduce the gradients of a group along the data axes.
  void ReduceAlongData(Group& group);
  // `flight`, along the data axes, and the group's sums of copies land during the backward pass of the next group.
  // Averages of parts over the replicas begin then, and land during that of the group after it.
  void BeginReduction(const Group& group, const Flight& flight);
  void LandReductions();
  void LandAverages();
  void Reduced(Group& group, int64_t layer);
  void UpdateWeights(Group& group, Tensor scale);
  void UpdateCodes(Group& group, Tensor scale);
  void QuantizeUpdated();

  Trace& trace_;
  const ModelShape& shape_;
  const Recipe& recipe_;
  ParameterStoreOptions options_;
  Flights& flights_;
  const int64_t shard_ranks_;  // data-parallel ranks that have parts of one copy
  const int64_t shard_place_;
  const int64_t replicas_;      // copies
  const int64_t tensor_ranks_;  // those that share the products of this one
  const int64_t tensor_place_;
  std::vector<Group> groups_;
  std::vector<int> group_of_;       // of a parameter
  std::vector<int64_t> offset_of_;  // of a parameter in its group
  std::vector<bool> has_gradient_;  // by parameter: its place in `sum` has contents
  std::vector<ParameterState> states_;
  UseOrder uses_;
  size_t window_ = 0;
  bool window_open_ = false;
  std::vector<Reducing> reducing_;   // of one layer
  std::vector<Reducing> averaging_;  // parts, along the replica axis
  std::optional<Update> updated_;    // quantized weights that are still numbers
  std::vector<Flight> returning_;    // optimizer: updated weights in flight
  std::vector<Waiting> waiting_;     // finished groups, to be updated at the end of the step
  Tensor grad_norm_;
  Tensor squared_sum_;
  Tensor aside_;  // the sum of squares that other ranks along the tensor axis count
  bool last_micro_step_ = true;
};

}  // namespace ridgeline::engine
