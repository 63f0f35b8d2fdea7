// The parts before and after the layers: embedding, final norm, head and loss.
#pragma once

#include "engine/device/trace.h"
#include "engine/model/parameter.h"
#include "engine/model/parameter_access.h"
#include "engine/model/residual.h"
#include "engine/precision/recipe.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

// The logits are computed, turned into their gradient and used up `logits_chunk` tokens at a time. Very many tokens
// take at most this many chunks, so that a step's number of ops, and its planning cost, do not grow with its tokens.
inline constexpr int64_t kMaxLogitsChunks = 1024;

// The tensors that a step reads its data from and leaves its results in.
struct StepTensors {
  Tensor ids;         // (micro-steps, tokens) int32; undefined for stack
  Tensor targets;     // the same
  Tensor loss;        // (1, 1) fp32
  Tensor rope_table;  // (seq, head_dim) fp32; llama only
  Tensor logits;      // (micro-steps x tokens, vocab), before they become their gradient; only if they are kept
  Tensor loss_scale;  // (1, kLossScaleState) fp32: the factor on the gradients; fp16 only
};

class EmbeddingAndHead {
 public:
  EmbeddingAndHead(Trace& trace, ParameterAccess& parameters, const ModelShape& shape, const RunSpec& spec,
                   const Recipe& recipe, const StepTensors& tensors, int64_t rank = 0);

  // Returns (tokens, hidden): the embeddings, or uniform random input for stack.
  Tensor Input(int64_t micro_step);

  // Takes the last layer's output, adds to the loss and returns the gradient of x, (tokens, hidden). The mean over the
  // ranks of both is that of the whole batch. stack's loss is a sum, so it counts as often as there are ranks.
  Tensor LossAndGradient(int64_t micro_step, const ResidualStream& in);

  // Takes the gradient of Input's result, and adds to the embeddings' gradients.
  void InputBackward(int64_t micro_step, Tensor d);

 private:
  Trace& trace_;
  ParameterAccess& parameters_;
  const ModelShape& shape_;
  const RunSpec& spec_;
  DType compute_;
  bool tf32_;  // products round to TF32
  const StepTensors& tensors_;
  int64_t tokens_;
  int64_t rank_;
};

}  // namespace ridgeline::engine
