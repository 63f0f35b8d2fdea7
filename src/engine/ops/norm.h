// RMSNorm and LayerNorm, each alone or in one pass with the residual's sum before it. Statistics and sums are fp32 for
// any dtype.
#pragma once

#include "engine/device/trace.h"
#include "engine/ops/elementwise.h"

namespace ridgeline::engine {

// The sum that becomes a norm's x in the norm's own pass, equal to the bit to DropoutAdd (elementwise.h) of these.
struct ResidualSum {
  Tensor branch = {};
  Tensor residual = {};
  double p = 0;
  RandomStream stream = {};
  bool defined() const { return residual.defined(); }
  DropoutAttrs attrs() const { return {p, stream.id, stream.first}; }
};
// Returns the step inputs that a call of `op` reads for the sum; undefined without dropout. Throws Error(kInternal), as
// recording does, if the sum cannot become x.
Tensor InputsOf(Trace& trace, const OpDef& op, const ResidualSum& sum, const Tensor& x);

struct NormAttrs {
  double eps = 0;
};
struct ResidualNormAttrs {
  double eps = 0;
  DropoutAttrs dropout;
};
struct NormBackwardAttrs {
  bool overwrite_dx = false;
  bool accumulate = false;
};

struct RmsNormOperands {
  struct {
    Tensor x, weight;
  } reads;
  struct {
    Tensor y, rstd;
  } writes;
};
extern const Op<RmsNormOperands, NormAttrs> kRmsNorm;

struct RmsNormBackwardOperands {
  struct {
    Tensor dy, x, weight, rstd;
    Tensor dx, dweight;  // the gradients that are added to
  } reads;
  struct {
    Tensor dx, dweight;
  } writes;
  struct {
    Tensor parts;  // of dweight
  } scratch;
};
extern const Op<RmsNormBackwardOperands, NormBackwardAttrs> kRmsNormBackward;

struct LayerNormOperands {
  struct {
    Tensor x, weight, bias;
  } reads;
  struct {
    Tensor y, mean, rstd;
  } writes;
};
extern const Op<LayerNormOperands, NormAttrs> kLayerNorm;

struct LayerNormBackwardOperands {
  struct {
    Tensor dy, x, weight, mean, rstd;
    Tensor dx, dweight, dbias;  // the gradients that are added to
  } reads;
  struct {
    Tensor dx, dweight, dbias;
  } writes;
  struct {
    Tensor parts;  // those of dweight, then those of dbias
  } scratch;
};
extern const Op<LayerNormBackwardOperands, NormBackwardAttrs> kLayerNormBackward;

struct ResidualNormOperands {
  struct {
    Tensor branch, residual, inputs, weight, bias;
  } reads;
  struct {
    Tensor x, y, mean, rstd;
  } writes;
};
extern const Op<ResidualNormOperands, ResidualNormAttrs> kResidualRmsNorm;
extern const Op<ResidualNormOperands, ResidualNormAttrs> kResidualLayerNorm;

// y = x * rstd * weight, rstd = 1 / sqrt(mean(x^2) + eps) (Zhang & Sennrich, 2019).
// x, y (tokens, hidden); weight (1, hidden); rstd (1, tokens) fp32, an output. x, y, weight have one floating dtype.
// A `sum` has x's shape and dtype. Then x is its result, and may be its branch or its residual.
void RmsNorm(Trace& trace, Tensor x, Tensor weight, Tensor y, Tensor rstd, double eps, const ResidualSum& sum = {});

// dx += the gradient through the norm (dx holds the residual stream's gradient); with `overwrite_dx`, dx = it instead.
// dweight (1, hidden), floating, is overwritten, or added to if `accumulate`. Deterministic for any thread count.
void RmsNormBackward(Trace& trace, Tensor dy, Tensor x, Tensor weight, Tensor rstd, Tensor dx, bool overwrite_dx,
                     Tensor dweight, bool accumulate);

// y = (x - mean) * rstd * weight + bias (Ba et al., 2016). mean, rstd (1, tokens) fp32, outputs. x, y, weight and bias
// have one floating dtype. `sum` as in RmsNorm.
void LayerNorm(Trace& trace, Tensor x, Tensor weight, Tensor bias, Tensor y, Tensor mean, Tensor rstd, double eps,
               const ResidualSum& sum = {});

// As RmsNormBackward; dbias as dweight.
void LayerNormBackward(Trace& trace, Tensor dy, Tensor x, Tensor weight, Tensor mean, Tensor rstd, Tensor dx,
                       bool overwrite_dx, Tensor dweight, Tensor dbias, bool accumulate);

}  // namespace ridgeline::engine
