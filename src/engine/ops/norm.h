// RMSNorm and LayerNorm. Statistics and sums are fp32 whatever the dtype.
#pragma once

#include "engine/device/trace.h"

namespace ridgeline {

extern const OpDef kRmsNorm;
extern const OpDef kRmsNormBackward;
extern const OpDef kLayerNorm;
extern const OpDef kLayerNormBackward;

// y = x * rstd * weight, rstd = 1 / sqrt(mean(x^2) + eps) (Zhang & Sennrich, 2019).
// x, y (tokens, hidden); weight (1, hidden); rstd (1, tokens) fp32, an output. x, y, weight of one dtype.
void RmsNorm(Trace& trace, Tensor x, Tensor weight, Tensor y, Tensor rstd, double eps);

// dx += the gradient through the norm (dx holds the residual stream's gradient); with `overwrite_dx` dx = instead.
// dweight (1, hidden) fp32 or bf16, overwritten, or added to where `accumulate`. Deterministic for any thread count.
void RmsNormBackward(Trace& trace, Tensor dy, Tensor x, Tensor weight, Tensor rstd, Tensor dx, bool overwrite_dx,
                     Tensor dweight, bool accumulate);

// y = (x - mean) * rstd * weight + bias (Ba et al., 2016). mean, rstd (1, tokens) fp32, outputs.
void LayerNorm(Trace& trace, Tensor x, Tensor weight, Tensor bias, Tensor y, Tensor mean, Tensor rstd, double eps);

void LayerNormBackward(Trace& trace, Tensor dy, Tensor x, Tensor weight, Tensor mean, Tensor rstd, Tensor dx,
                       bool overwrite_dx, Tensor dweight, Tensor dbias, bool accumulate);

}  // namespace ridgeline
