// A sublayer of a transformer layer, forward and backward: x + dropout(branch(norm(x))). What the branch is differs by
// kind (model/attention.h, model/mlp.h). This file has the norm, the dropout and the residual, which all share.
#pragma once

#include "engine/device/trace.h"
#include "engine/model/linear.h"
#include "engine/model/parameter.h"
#include "engine/model/parameter_access.h"
#include "engine/model/residual.h"
#include "engine/model/tensor_group.h"
#include "engine/precision/recipe.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

// The tensors that a sublayer's backward pass reads. A storage lives as long as something reads it, so dropping a
// tensor here frees it. The backward pass computes an undefined `norm` again, and an undefined `last` of an MLP.
// If a tensor-parallel group splits tokens, the first three have the rank's own ones.
struct SavedSublayer {
  Tensor x;                     // (tokens, hidden): the sublayer's input
  Tensor norm_mean, norm_rstd;  // (1, tokens) fp32
  LinearInput norm;             // (tokens, hidden): the norm's output, or its codes
  Tensor inner;                 // (tokens, outputs of the first product): rotated, or before the activation
  Tensor lse;                   // attention: (batch * heads, seq) fp32
  LinearInput last;             // (tokens, inputs of the last product): the attention's result, or the activation's
};

// What a forward pass is run for.
struct Wanted {
  bool output = true;
  bool saved = true;  // quantized layers: `saved` in the form the backward pass reads
};

// What all sublayers of a step's program share. References must outlive them.
struct SublayerContext {
  Trace& trace;
  ParameterAccess& parameters;
  const ModelShape& shape;
  const RunSpec& spec;
  const Recipe& recipe;
  const DelayedScales& scales;
  Tensor rope_table;  // undefined if the family has none
  TensorGroup& group;
};

// One object serves all sublayers of its kind. Calls use the trace's current layer.
class Sublayer {
 public:
  explicit Sublayer(const SublayerContext& context);
  virtual ~Sublayer() = default;
  Sublayer(const Sublayer&) = delete;
  Sublayer& operator=(const Sublayer&) = delete;

  // Returns the sublayer's output for `in`, or nothing if it is not wanted (a recomputation). `micro_step` selects the
  // dropout's mask.
  ResidualStream Forward(const SublayerParameters& p, int64_t micro_step, const ResidualStream& in,
                         SavedSublayer& saved, Wanted wanted);

  // d (own tokens, hidden) holds the gradient of the sublayer's output, and afterwards that of its input.
  void Backward(const SublayerParameters& p, int64_t micro_step, SavedSublayer& saved, Tensor d);

  // Drops what the backward pass computes again without a product.
  void DropCheap(SavedSublayer& saved) const {
    saved.norm = {};
    DropCheapOfBranch(saved);
  }

 protected:
  // Returns (own tokens, hidden), or nothing if it is not wanted.
  virtual Tensor Branch(const SublayerParameters& p, SavedSublayer& saved, Wanted wanted) = 0;
  // Computes again what DropCheapOfBranch dropped.
  virtual void BranchAgain(const SublayerParameters& p, SavedSublayer& saved) = 0;
  // Takes the gradient of the branch's result, and returns that of the norm's output. Calls NormAgain before it reads
  // that output.
  virtual Tensor BranchBackward(const SublayerParameters& p, int64_t micro_step, SavedSublayer& saved, Tensor d) = 0;
  virtual void DropCheapOfBranch(SavedSublayer& saved) const = 0;

  void NormAgain(const SublayerParameters& p, SavedSublayer& saved);
  Tensor New(int64_t rows, int64_t cols) { return trace_.Temporary(compute_, rows, cols, Category::kActivations); }

  Trace& trace_;
  const ModelShape& shape_;
  const RunSpec& spec_;
  TensorGroup& group_;
  const int64_t tokens_;  // in the branch
  Linears linears_;

 private:
  LinearInput Norm(const SublayerParameters& p, const ResidualStream& in, Tensor& mean, Tensor& rstd, bool saved);
  void NormBackward(NormParameters p, const SavedSublayer& saved, Tensor dy, Tensor d);
  RandomStream DropoutStream(const SublayerParameters& p, int64_t micro_step) const;

  ParameterAccess& parameters_;
  const DType compute_;
};

}  // namespace ridgeline::engine
