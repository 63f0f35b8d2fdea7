// Ops that make the inputs of linear layers, or the gradients of their outputs, and write their codes in the same pass.
// The scale is known before (E4M3 and E5M2 with delayed scaling), or belongs to a block (mxfp8). Each equals its op
// followed by Quantize, to the bit, without the numbers between them in memory. Only CUDA devices have kernels for
// them.
#pragma once

#include "engine/device/trace.h"
#include "engine/ops/norm.h"
#include "engine/ops/quantize.h"

namespace ridgeline::engine {

inline constexpr Quantizer kFusedQuantizer = {Format::kE4M3, Scaling::kDelayed};
inline constexpr Quantizer kFusedGradientQuantizer = {Format::kE5M2, Scaling::kDelayed};
constexpr Quantizer MxGradientQuantizer(ScaleRule rule) {
  return {Format::kE4M3, Scaling::kBlock32, Rounding::kNearest, false, rule};
}

struct ActivationQuantizeOperands {
  struct {
    Tensor x;
    Tensor delayed_scale, delayed_amax;
  } reads;
  struct {
    StoredCodes row, col;
    Tensor delayed_amax;
  } writes;
};
extern const Op<ActivationQuantizeOperands> kSwiGluQuantize;
extern const Op<ActivationQuantizeOperands> kGeluQuantize;

// Quantizes y (tokens, ffn) of SwiGlu, from gate_up (tokens, 2 * ffn) bf16, to *row (tokens, ffn) and *col (ffn,
// tokens). Either may be nullptr.
void SwiGluQuantize(Trace& trace, Tensor gate_up, const QuantizedTensor* row, const QuantizedTensor* col,
                    DelayedScale delayed);
// The same for Gelu, x (tokens, ffn) bf16.
void GeluQuantize(Trace& trace, Tensor x, const QuantizedTensor* row, const QuantizedTensor* col, DelayedScale delayed);

struct SwiGluBackwardQuantizeOperands {
  struct {
    Tensor dy, gate_up;
    Tensor delayed_scale, delayed_amax;
  } reads;
  struct {
    StoredCodes row, col;
    Tensor delayed_amax;
  } writes;
};
extern const Op<SwiGluBackwardQuantizeOperands> kSwiGluBackwardQuantize;

struct SwiGluBackwardQuantizeMxOperands {
  struct {
    Tensor dy, gate_up;
  } reads;
  struct {
    StoredCodes row, col;
  } writes;
};
extern const Op<SwiGluBackwardQuantizeMxOperands, ScaleRule> kSwiGluBackwardQuantizeMx;

// Whether the ops below make these codes.
constexpr bool MakesGradientCodes(const Quantizer& quantizer) {
  return quantizer == kFusedGradientQuantizer || quantizer == MxGradientQuantizer(quantizer.scale_rule);
}
// Likewise of (tokens, 2 * ffn), whose blocks of 32 must not cross from gates to ups.
constexpr bool MakesGateGradientCodes(const Quantizer& quantizer, int64_t ffn) {
  return MakesGradientCodes(quantizer) && (!HasBlocks(quantizer.scaling) || ffn % BlockOf(Scaling::kBlock32) == 0);
}

// Quantizes d_gate_up of SwiGluBackward, from dy (tokens, ffn) and gate_up (tokens, 2 * ffn) bf16, to row (tokens, 2 *
// ffn) and col (2 * ffn, tokens), both by one quantizer for which MakesGateGradientCodes. Blocks need no `delayed`.
void SwiGluBackwardQuantize(Trace& trace, Tensor dy, Tensor gate_up, const QuantizedTensor& row,
                            const QuantizedTensor& col, DelayedScale delayed);

struct GeluBackwardQuantizeOperands {
  struct {
    Tensor dy, x;
    Tensor delayed_scale, delayed_amax;
    Tensor dbias;  // the gradient that is added to
  } reads;
  struct {
    StoredCodes row, col;
    Tensor delayed_amax;
    Tensor dbias;
  } writes;
  struct {
    Tensor parts;  // of dbias
  } scratch;
};
struct GeluBackwardQuantizeAttrs {
  Quantizer quantizer;
  bool accumulate = false;
};
extern const Op<GeluBackwardQuantizeOperands, GeluBackwardQuantizeAttrs> kGeluBackwardQuantize;

// Quantizes dx of GeluBackward, from dy and x (tokens, ffn) bf16, to row (tokens, ffn) and col (ffn, tokens), both by
// one quantizer for which MakesGradientCodes. dbias (1, ffn), floating, becomes the sums of dx's columns [+ dbias if
// `accumulate`], as ColumnSum's, but in an order of its own. Only shapes decide this order. dbias may be undefined.
// Blocks need no `delayed`.
void GeluBackwardQuantize(Trace& trace, Tensor dy, Tensor x, const QuantizedTensor& row, const QuantizedTensor& col,
                          DelayedScale delayed, Tensor dbias, bool accumulate);

struct NormQuantizeOperands {
  struct {
    Tensor x, weight, bias;
    Tensor delayed_scale, delayed_amax;
  } reads;
  struct {
    StoredCodes y;
    Tensor delayed_amax;
    Tensor mean, rstd;
  } writes;
};
extern const Op<NormQuantizeOperands, NormAttrs> kRmsNormQuantize;
extern const Op<NormQuantizeOperands, NormAttrs> kLayerNormQuantize;
struct ResidualNormQuantizeOperands {
  struct {
    Tensor branch, residual, inputs, weight, bias;
    Tensor delayed_scale, delayed_amax;
  } reads;
  struct {
    Tensor x;
    StoredCodes y;
    Tensor delayed_amax;
    Tensor mean, rstd;
  } writes;
};
extern const Op<ResidualNormQuantizeOperands, ResidualNormAttrs> kResidualRmsNormQuantize;
extern const Op<ResidualNormQuantizeOperands, ResidualNormAttrs> kResidualLayerNormQuantize;

// Quantizes y (tokens, hidden) of the norms (norm.h) along its rows; x, weight and bias are bf16. Transposed makes the
// columns from the result, because a row's numbers are known only when all of it was read. `sum` as for the norms.
void RmsNormQuantize(Trace& trace, Tensor x, Tensor weight, const QuantizedTensor& y, Tensor rstd, double eps,
                     DelayedScale delayed, const ResidualSum& sum = {});
void LayerNormQuantize(Trace& trace, Tensor x, Tensor weight, Tensor bias, const QuantizedTensor& y, Tensor mean,
                       Tensor rstd, double eps, DelayedScale delayed, const ResidualSum& sum = {});

}  // namespace ridgeline::engine
