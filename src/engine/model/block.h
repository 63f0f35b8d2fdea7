// One transformer layer, forward and backward, for every family: the main part of the step program.
#pragma once

#include "engine/device/trace.h"
#include "engine/model/delayed_scales.h"
#include "engine/model/linear.h"
#include "engine/model/parameter.h"
#include "engine/model/parameter_access.h"
#include "engine/model/residual.h"
#include "engine/ops/elementwise.h"
#include "engine/precision/recipe.h"
#include "ridgeline/run.h"

namespace ridgeline {

// The tensors that a layer's backward pass reads. A storage lives as long as something reads it, so dropping a tensor
// here frees it. Backward computes norm1, norm2 and act again if they are undefined.
struct SavedLayer {
  Tensor x;                       // (tokens, hidden): the layer's input
  Tensor norm1_mean, norm1_rstd;  // (1, tokens) fp32
  LinearInput norm1;              // (tokens, hidden): the norm's output, or its codes
  Tensor qkv;                     // (tokens, (heads + 2 kv_heads) * head_dim), rotated
  Tensor lse;                     // (batch * heads, seq) fp32
  Tensor attention_out;           // (tokens, heads * head_dim)
  Tensor x_mid;                   // (tokens, hidden): after the attention's residual
  Tensor norm2_mean, norm2_rstd;  // (1, tokens) fp32
  LinearInput norm2;              // (tokens, hidden)
  Tensor up;                      // (tokens, 2 ffn) for llama, else (tokens, ffn): before the activation
  LinearInput act;                // (tokens, ffn)
};

class Block {
 public:
  // rope_table is undefined if the family has none. `rank`: the rank whose rows of the batch these are. References must
  // outlive the Block.
  Block(Trace& trace, ParameterAccess& parameters, const ModelShape& shape, const RunSpec& spec, const Recipe& recipe,
        const DelayedScales& scales, Tensor rope_table, int64_t rank = 0);

  struct Wanted {
    bool output = true;
    bool saved = true;  // quantized layers: `saved` in the form the backward pass reads
  };
  // Returns the layer's output for `in`, or nothing if it is not wanted (a recomputation). `micro_step` selects the
  // dropout masks.
  ResidualStream Forward(int64_t layer, int64_t micro_step, const ResidualStream& in, SavedLayer& saved, Wanted wanted);

  // d (tokens, hidden) holds the gradient of the layer's output, and afterwards that of its input.
  void Backward(int64_t layer, int64_t micro_step, SavedLayer& saved, Tensor d);

 private:
  struct NormParameters {
    int weight, bias;
  };
  // `of`: the layer whose input it is; `saved` as in Wanted.
  LinearInput Norm(LinearLayer of, NormParameters p, const ResidualStream& in, Tensor& mean, Tensor& rstd, bool saved);
  void NormAgain(LinearLayer of, NormParameters p, Tensor x, LinearInput& out);
  void NormBackward(NormParameters p, Tensor dy, Tensor x, Tensor mean, Tensor rstd, Tensor d);
  LinearInput Activation(Tensor up, Wanted wanted);
  // Returns the gradient of `up`, which is read here for the last time: in place of one of the operands, or as codes.
  LinearGradient ActivationBackward(Tensor d_act, Tensor up);
  Tensor New(int64_t rows, int64_t cols) { return trace_.Temporary(compute_, rows, cols, Category::kActivations); }
  RandomStream DropoutStream(int64_t layer, int64_t micro_step, int64_t which) const;
  // Returns residual + dropout(branch), stored in the branch's place.
  ResidualStream Add(Tensor branch, Tensor residual, RandomStream stream) const {
    return {branch, {branch, residual, spec_.dropout, stream}};
  }
  Tensor Query(Tensor qkv) const;
  Tensor Key(Tensor qkv) const;
  Tensor Value(Tensor qkv) const;

  Trace& trace_;
  ParameterAccess& parameters_;
  const ModelShape& shape_;
  const RunSpec& spec_;
  DType compute_;
  Linears linears_;
  Tensor rope_table_;
  int64_t tokens_;
  int64_t rank_;
};

}  // namespace ridgeline
