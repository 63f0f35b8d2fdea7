// Adam and AdamW, gradient norm and clipping.
#pragma once

#include "engine/device/trace.h"

namespace ridgeline {

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

// One step over a parameter's elements (Kingma & Ba, 2015, bias-corrected; PyTorch's order of operations).
// work: the weights the step program multiplies, in any floating dtype. master: undefined, or what keeps an fp32 master
// weight: int16 beside a bf16 work, where bits(weight) = (bits(work) << 16) + master with work = bf16 nearest to
// weight, ties away from zero (4 bytes a weight for both), or fp32, the weight itself, which is rounded to work: to
// bf16 in the same way. work is then only written. m, v, grad: fp32 or bf16; grad is left as it is. scale:
// undefined, or (1,1) fp32 that multiplies the gradient; where it is negative nothing is changed. The bias correction
// counts StepInputs::step, less the steps that loss_scale, a state of LossScale below, has skipped: undefined where
// none is. All of the same number of elements; contiguous.
void Adam(Trace& trace, Tensor work, Tensor master, Tensor m, Tensor v, Tensor grad, Tensor scale,
          const AdamAttrs& attrs, Tensor loss_scale = {});

// Splits master into work and low as above, and back.
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

// sum (1, 1) fp32 += the sum of x's squares; x of any floating dtype. Deterministic for any thread count.
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
// fp32: the factor on the loss, which begins at kFirstLossScale; steps since it changed; steps skipped in all. From
// `sum`, of squares of gradients that carry the factor: norm = sqrt(sum) / factor. Where that is finite, scale = min(1,
// clip / (norm + 1e-6)) / factor (clip 0: 1 / factor), and after kLossScaleWindow such steps the factor doubles. Else
// scale = -1, the step is skipped, and the factor is halved.
inline constexpr int64_t kLossScaleState = 3;
inline constexpr float kFirstLossScale = 65536;
inline constexpr float kLossScaleWindow = 2000;
void LossScale(Trace& trace, Tensor sum, Tensor state, Tensor norm, Tensor scale, double clip);

}  // namespace ridgeline
