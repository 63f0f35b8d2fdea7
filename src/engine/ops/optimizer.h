// Adam and AdamW, gradient norm and clipping.
#pragma once

#include "engine/device/cpu/kernel.h"
#include "engine/device/trace.h"

namespace ridgeline {

extern const OpDef kAdam;
extern const OpDef kSquaredSum;
extern const OpDef kClipScale;

struct AdamAttrs {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = true;  // AdamW (Loshchilov & Hutter, 2019): w -= lr * decay * w; else decay * w joins the gradient
};

// One step over a parameter's elements (Kingma & Ba, 2015, bias-corrected; PyTorch's order of operations).
// work: the weights the step program multiplies, fp32 or bf16. low: undefined, or int16 where an fp32 master weight is
// kept as bits(master) = (bits(work) << 16) + low with work = bf16 nearest to master: 4 bytes a weight for both.
// m, v: fp32 or bf16. grad: fp32 or bf16, left as it is. scale: undefined, or (1,1) fp32 that multiplies the gradient.
// All of the same number of elements; contiguous.
void Adam(Trace& trace, Tensor work, Tensor low, Tensor m, Tensor v, Tensor grad, Tensor scale, const AdamAttrs& attrs);

// Splits master into work and low as above, and back.
void SplitMaster(float master, uint16_t& work, int16_t& low);
float JoinMaster(uint16_t work, int16_t low);

// sum += the sum of x's squares. Deterministic for any thread count.
void SquaredSum(Trace& trace, Tensor x, Tensor sum);
// scale = min(1, clip / (sqrt(sum) + 1e-6)), as torch.nn.utils.clip_grad_norm_; norm = sqrt(sum).
void ClipScale(Trace& trace, Tensor sum, Tensor norm, Tensor scale, double clip);

void AddOptimizerCpu(CpuKernelTable& table);

}  // namespace ridgeline
