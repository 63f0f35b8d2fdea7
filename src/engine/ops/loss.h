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

struct LossStatisticsOperands {
  struct {
    Tensor logits, targets;
  } reads;
  struct {
    Tensor statistics;
  } writes;
};
struct LossStatisticsAttrs {
  int64_t first = 0;
};
extern const Op<LossStatisticsOperands, LossStatisticsAttrs> kLossStatistics;

struct CrossEntropyOfPartOperands {
  struct {
    Tensor logits, targets, statistics, loss, factor;
  } reads;
  struct {
    Tensor logits, loss;
  } writes;
  struct {
    Tensor row_losses;  // (1, rows) fp32
  } scratch;
};
struct CrossEntropyOfPartAttrs {
  double scale = 1;
  int64_t first = 0;
};
extern const Op<CrossEntropyOfPartOperands, CrossEntropyOfPartAttrs> kCrossEntropyOfPart;

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

// The same of logits whose columns are divided among ranks, in two ops with a gather of `statistics` between them
// (Shoeybi et al., "Megatron-LM", 2019, section 3). A rank has columns [first, first + cols) of the vocabulary.
//
// statistics (1, kNumbersOfLoss * rows) fp32: for each row of these columns the largest logit, then for each row the
// sum of e^(logit - largest) over the others, so that it keeps its digits where they are few, then the target's logit,
// or 0 if the target is not among these columns.
inline constexpr int64_t kNumbersOfLoss = 3;
void LossStatistics(Trace& trace, Tensor logits, Tensor targets, Tensor statistics, int64_t first);
// statistics (1, parts * kNumbersOfLoss * rows): those of all parts, in one order on every rank. Their sums are added
// in that order, so every rank has the same loss, to the bit.
void CrossEntropyOfPart(Trace& trace, Tensor logits, Tensor targets, Tensor statistics, Tensor loss, double scale,
                        int64_t first, Tensor factor = {});

// loss += sum of x's elements * scale; x of any floating dtype. Deterministic for any thread count.
void SumLoss(Trace& trace, Tensor x, Tensor loss, double scale);

}  // namespace ridgeline::engine
