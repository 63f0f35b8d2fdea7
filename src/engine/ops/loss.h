// Losses. Scalars are (1, 1) fp32 tensors.
#pragma once

#include "engine/device/trace.h"

namespace ridgeline::engine {

struct LossAttrs {
  double scale = 1;
};
struct CrossEntropyOperands {
  struct {
    Tensor logits, targets, loss, factor;
  } reads;
  struct {
    Tensor logits, loss;
  } writes;
  struct {
    Tensor row_losses;  // (1, rows) fp32
  } scratch;
};
extern const Op<CrossEntropyOperands, LossAttrs> kCrossEntropy;

struct SumLossOperands {
  struct {
    Tensor x, loss;
  } reads;
  struct {
    Tensor loss;
  } writes;
  struct {
    Tensor parts;
  } scratch;
};
extern const Op<SumLossOperands, LossAttrs> kSumLoss;

// One chunk of cross-entropy, forward and backward at once: adds the chunk's summed loss * scale to `loss` and
// replaces logits (rows, vocab) by their gradient, (softmax - onehot) * scale. targets (1, rows) int32.
// Any floating dtype, strided allowed. Deterministic for any thread count (row losses go through a workspace).
// factor: undefined, or a tensor whose first element multiplies the gradient, but not the loss.
void CrossEntropy(Trace& trace, Tensor logits, Tensor targets, Tensor loss, double scale, Tensor factor = {});

// loss += sum of x's elements * scale; x of any floating dtype. Deterministic for any thread count.
void SumLoss(Trace& trace, Tensor x, Tensor loss, double scale);

}  // namespace ridgeline::engine
