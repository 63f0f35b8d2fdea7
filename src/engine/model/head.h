// The parts before and after the layers: embedding, final norm, head and loss. The ranks of a tensor-parallel group
// each have successive tokens of the vocabulary: a row of the embedding comes from the rank that has it, and the loss
// from what each rank knows of its logits (Shoeybi et al., "Megatron-LM", 2019, section 3).
#pragma once

#include "engine/device/trace.h"
#include "engine/model/parameter.h"
#include "engine/model/parameter_access.h"
#include "engine/model/residual.h"
#include "engine/model/tensor_group.h"
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
  // (micro-steps x tokens, the rank's vocabulary), before they become their gradient; only if they are kept.
  Tensor logits;
  Tensor loss_scale;  // (1, kLossScaleState) fp32: the factor on the gradients; fp16 only
};

class EmbeddingAndHead {
 public:
  EmbeddingAndHead(Trace& trace, ParameterAccess& parameters, const ModelShape& shape, const RunSpec& spec,
                   const Recipe& recipe, const StepTensors& tensors, TensorGroup& group);

  // Below, tokens are those that the rank has between the products (TensorGroup::own_tokens).

  // Returns (tokens, hidden): the embeddings, or uniform random input for stack.
  Tensor Input(int64_t micro_step);

  // Takes the last layer's output, adds to the loss and returns the gradient of x, (tokens, hidden). The mean over the
  // data-parallel ranks of both is that of the whole batch. stack's loss is a sum, so it counts as often as there are
  // such ranks.
  Tensor LossAndGradient(int64_t micro_step, const ResidualStream& in);

  // Takes the gradient of Input's result, and adds to the embeddings' gradients.
  void InputBackward(int64_t micro_step, Tensor d);

  // Ends the step: the loss becomes that of all ranks of the group.
  void FinishLoss();

 private:
  // Adds the loss of successive tokens, whose targets are (1, rows), and replaces their logits, (rows, the rank's part
  // of the vocabulary), by their gradient.
  void Loss(Tensor logits, Tensor targets);
  // The first token of the vocabulary that this rank has, in the embedding and in the head.
  int64_t FirstOfVocabulary() const { return group_.place() * (spec_.vocab / group_.ranks()); }

  Trace& trace_;
  ParameterAccess& parameters_;
  const ModelShape& shape_;
  const RunSpec& spec_;
  DType compute_;
  bool tf32_;  // products round to TF32
  const StepTensors& tensors_;
  int64_t tokens_;  // in the products
  TensorGroup& group_;
};

}  // namespace ridgeline::engine
