// Elementwise ops: rotary embedding, activations, residuals, dropout, fills.
#pragma once

#include "engine/device/trace.h"

namespace ridgeline::engine {

struct RopeOperands {
  struct {
    Tensor x, cos_sin;
  } reads;
  struct {
    Tensor x;
  } writes;
};
struct RopeAttrs {
  int64_t seq = 0;
  int64_t head_dim = 0;
  bool inverse = false;
};
extern const Op<RopeOperands, RopeAttrs> kRope;

// Rotates pairs (i, i + head_dim/2) of every head of x (tokens, heads*head_dim; floating, strided allowed), in place,
// by the angle of the token's position (Su et al., 2021, in Hugging Face's half-split order). cos_sin (seq, head_dim)
// fp32: cosines in the first half of a row, sines in the second. `inverse` rotates back: the gradient.
void Rope(Trace& trace, Tensor x, Tensor cos_sin, int64_t seq, int64_t head_dim, bool inverse);
// Fills the table above for a base theta.
void FillRopeTable(float* cos_sin, int64_t seq, int64_t head_dim, double theta);

struct SwiGluOperands {
  struct {
    Tensor gate_up;
  } reads;
  struct {
    Tensor y;
  } writes;
};
extern const Op<SwiGluOperands> kSwiGlu;
struct SwiGluBackwardOperands {
  struct {
    Tensor dy, gate_up;
  } reads;
  struct {
    Tensor d_gate_up;
  } writes;
};
extern const Op<SwiGluBackwardOperands> kSwiGluBackward;

// y (tokens, ffn) = silu(gate) * up. gate_up (tokens, 2*ffn) has gate in the first ffn columns and up in the others.
// Both have one floating dtype.
void SwiGlu(Trace& trace, Tensor gate_up, Tensor y);
// All have one floating dtype. d_gate_up (tokens, 2*ffn) may be gate_up itself.
void SwiGluBackward(Trace& trace, Tensor dy, Tensor gate_up, Tensor d_gate_up);

struct GeluOperands {
  struct {
    Tensor x;
  } reads;
  struct {
    Tensor y;
  } writes;
};
extern const Op<GeluOperands> kGelu;
struct GeluBackwardOperands {
  struct {
    Tensor dy, x;
  } reads;
  struct {
    Tensor dx;
  } writes;
};
extern const Op<GeluBackwardOperands> kGeluBackward;

// GELU, tanh form (Hendrycks & Gimpel, 2016), as GPT-2 ("gelu_new") and TransformerEngine compute it. x and y
// have one shape and one floating dtype; y may be x.
void Gelu(Trace& trace, Tensor x, Tensor y);
void GeluBackward(Trace& trace, Tensor dy, Tensor x, Tensor dx);  // dx may be dy or x

// Names a stream of random numbers: the same (seed, step, stream, element) is the same number on every device and in
// every recomputation (Philox 4x32-10, Salmon et al., 2011).
struct RandomStream {
  uint32_t id = 0;
  int64_t first = 0;  // the position in the stream of the tensor's first element: a rank has rows of a larger tensor
};

struct DropoutAttrs {
  double p = 0;
  uint32_t stream = 0;
  int64_t first = 0;
};
struct DropoutAddOperands {
  struct {
    Tensor x, residual, inputs;
  } reads;
  struct {
    Tensor out;
  } writes;
};
extern const Op<DropoutAddOperands, DropoutAttrs> kDropoutAdd;
struct DropoutBackwardOperands {
  struct {
    Tensor dy, inputs;
  } reads;
  struct {
    Tensor dx;
  } writes;
};
extern const Op<DropoutBackwardOperands, DropoutAttrs> kDropoutBackward;

// out = residual + x * mask / (1 - p), p in [0, 1); p = 0 is a plain add. All have one shape and one floating dtype.
// out may be x or residual.
void DropoutAdd(Trace& trace, Tensor x, Tensor residual, Tensor out, double p, RandomStream stream);
// dx = dy * mask / (1 - p), with the same stream. dx may be dy.
void DropoutBackward(Trace& trace, Tensor dy, Tensor dx, double p, RandomStream stream);

struct FillOperands {
  struct {
    Tensor factor;
  } reads;
  struct {
    Tensor x;
  } writes;
};
struct FillAttrs {
  double value = 0;
};
extern const Op<FillOperands, FillAttrs> kFill;
struct FillUniformOperands {
  struct {
    Tensor inputs;
  } reads;
  struct {
    Tensor x;
  } writes;
};
struct StreamAttrs {
  uint32_t stream = 0;
  int64_t first = 0;
};
extern const Op<FillUniformOperands, StreamAttrs> kFillUniform;

// Sets every element of x, which has any floating dtype, to `value` [* the first element of `factor`, fp32].
void Fill(Trace& trace, Tensor x, double value, Tensor factor = {});
void FillUniform(Trace& trace, Tensor x, RandomStream stream);  // uniform in [0, 1), floating

struct ColumnSumOperands {
  struct {
    Tensor x;
    Tensor sum;  // the sum that is added to
  } reads;
  struct {
    Tensor sum;
  } writes;
  struct {
    Tensor parts;
  } scratch;
};
struct ColumnSumAttrs {
  bool accumulate = false;
};
extern const Op<ColumnSumOperands, ColumnSumAttrs> kColumnSum;

// sum (1, cols) = the sums of x's columns [+ sum if `accumulate`]; x (rows, cols), strided allowed, both floating.
// Deterministic for any thread count.
void ColumnSum(Trace& trace, Tensor x, Tensor sum, bool accumulate);

}  // namespace ridgeline::engine
