// Adam and AdamW, gradient norm and clipping.
#pragma once

#include "engine/device/trace.h"

namespace ridgeline::engine {

struct AdamAttrs {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = true;  // AdamW (Loshchilov & Hutter, 2019): w -= lr * decay * w; else decay * w joins the gradient

  bool operator==(const AdamAttrs&) const = default;
};
struct AdamOperands {
  struct {
    Tensor work, master, m, v, grad, scale, loss_scale, inputs;
  } reads;
  struct {
    Tensor work, master, m, v;
  } writes;
};
extern const Op<AdamOperands, AdamAttrs> kAdam;

// One step over a parameter's elements (Kingma & Ba, 2015, bias-corrected; PyTorch's order of operations). All tensors
// have the same number of elements, and are contiguous.
// work: the weights that the step program multiplies, in any floating dtype. With a master, work is only written.
// master: undefined, or a way to keep an fp32 master weight:
//   int16 with a bf16 work: bits(weight) = (bits(work) << 16) + master, where work is the bf16 nearest to weight, ties
//   away from zero (4 bytes a weight for both);
//   fp32: the weight itself, which is rounded to work: to bf16 in the same way.
// m, v, grad: fp32 or bf16; grad does not change.
// scale: undefined, or (1, 1) fp32 that multiplies the gradient; if it is negative, nothing changes.
// loss_scale: a state of LossScale below, or undefined. The bias correction counts StepInputs::step less the steps that
//   it has skipped.
void Adam(Trace& trace, Tensor work, Tensor master, Tensor m, Tensor v, Tensor grad, Tensor scale,
          const AdamAttrs& attrs, Tensor loss_scale = {});

// Splits master into work and low as above, and joins them again.
void SplitMaster(float master, uint16_t& work, int16_t& low);
float JoinMaster(uint16_t work, int16_t low);

struct SquaredSumOperands {
  struct {
    Tensor x, sum;
  } reads;
  struct {
    Tensor sum;
  } writes;
  struct {
    Tensor parts;
  } scratch;
};
extern const Op<SquaredSumOperands> kSquaredSum;

// sum (1, 1) fp32 += the sum of x's squares; x has any floating dtype. Deterministic for any thread count.
void SquaredSum(Trace& trace, Tensor x, Tensor sum);
struct ClipAttrs {
  double clip = 0;
};
struct ClipScaleOperands {
  struct {
    Tensor sum;
  } reads;
  struct {
    Tensor norm, scale;
  } writes;
};
extern const Op<ClipScaleOperands, ClipAttrs> kClipScale;

// scale = min(1, clip / (sqrt(sum) + 1e-6)), as torch.nn.utils.clip_grad_norm_; norm = sqrt(sum). All
// (1, 1) fp32, clip positive.
void ClipScale(Trace& trace, Tensor sum, Tensor norm, Tensor scale, double clip);

struct LossScaleOperands {
  struct {
    Tensor sum, state;
  } reads;
  struct {
    Tensor state, norm, scale;
  } writes;
};
extern const Op<LossScaleOperands, ClipAttrs> kLossScale;

// fp16's dynamic loss scaling (Micikevicius et al., "Mixed precision training", 2018). `state` (1, kLossScaleState)
// fp32: the factor on the loss, which starts at kFirstLossScale; steps since it changed; all skipped steps. `sum` holds
// the squares of gradients that carry the factor: norm = sqrt(sum) / factor. If that is finite, scale = min(1, clip /
// (norm + 1e-6)) / factor (clip 0: 1 / factor), and after kLossScaleWindow such steps the factor doubles. Else scale =
// -1, the step is skipped, and the factor is halved.
inline constexpr int64_t kLossScaleState = 3;
inline constexpr float kFirstLossScale = 65536;
inline constexpr float kLossScaleWindow = 2000;
void LossScale(Trace& trace, Tensor sum, Tensor state, Tensor norm, Tensor scale, double clip);

}  // namespace ridgeline::engine
