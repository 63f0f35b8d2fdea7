#include "engine/ops/elementwise.h"

#include <string>

#include <cmath>

#include "engine/ops/record.h"

namespace ridgeline::engine {

namespace {

uint32_t VariantOfDropoutAdd(const OpCall& call) { return call.attrs(kDropoutAdd).p > 0 ? 1 : 0; }
std::string NameOfDropoutAdd(uint32_t variant) { return variant != 0 ? " dropped" : " kept"; }

}  // namespace

const Op<RopeOperands, RopeAttrs> kRope{OpDef::Pass("rope", kBetweenProducts)};
const Op<SwiGluOperands> kSwiGlu{OpDef::Pass("swiglu", kBetweenProducts)};
const Op<SwiGluBackwardOperands> kSwiGluBackward{OpDef::Pass("swiglu_backward", kBetweenProducts)};
const Op<GeluOperands> kGelu{OpDef::Pass("gelu", kBetweenProducts)};
const Op<GeluBackwardOperands> kGeluBackward{OpDef::Pass("gelu_backward", kBetweenProducts)};
const Op<DropoutAddOperands, DropoutAttrs> kDropoutAdd{
    OpDef::Pass("dropout_add", kBetweenProducts, {VariantOfDropoutAdd, NameOfDropoutAdd})};
const Op<DropoutBackwardOperands, DropoutAttrs> kDropoutBackward{
    OpDef::Pass("dropout_backward", BesideBudget("the gradient of a branch beside the residual's"))};
const Op<FillOperands, FillAttrs> kFill{OpDef::Pass("fill", BesideBudget("sets what others add to"))};
const Op<FillUniformOperands, StreamAttrs> kFillUniform{
    OpDef::Pass("fill_uniform", BesideBudget("the input of a model without an embedding"))};
const Op<ColumnSumOperands, ColumnSumAttrs> kColumnSum{
    OpDef::Pass("column_sum", BesideBudget("a bias's gradient: a product of the same numbers could add it up"))};

void Rope(Trace& trace, Tensor x, Tensor cos_sin, int64_t seq, int64_t head_dim, bool inverse) {
  Require(IsFloat(x) && head_dim > 0 && head_dim % 2 == 0 && x.cols % head_dim == 0 && x.row_stride >= x.cols, kRope,
          "x must be (tokens, heads * head_dim), with an even head_dim", {{"x", x}});
  Require(Is(cos_sin, DType::kF32, seq, head_dim) && seq > 0 && x.rows % seq == 0, kRope,
          "cos_sin must be (seq, head_dim) in fp32, and x whole sequences", {{"x", x}, {"cos_sin", cos_sin}});
  trace.Call(kRope, {{x, cos_sin}, {x}}, {}, {seq, head_dim, inverse});
}

void FillRopeTable(float* cos_sin, int64_t seq, int64_t head_dim, double theta) {
  const int64_t half = head_dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    for (int64_t position = 0; position < seq; ++position) {
      const double angle = static_cast<double>(position) * frequency;
      cos_sin[position * head_dim + i] = static_cast<float>(std::cos(angle));
      cos_sin[position * head_dim + half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

void SwiGlu(Trace& trace, Tensor gate_up, Tensor y) {
  Require(IsFloat(y) && y.contiguous() && Is(gate_up, y.dtype, y.rows, 2 * y.cols), kSwiGlu,
          "gate_up must be (tokens, 2 * ffn) for a y of (tokens, ffn), both of one dtype",
          {{"gate_up", gate_up}, {"y", y}});
  trace.Call(kSwiGlu, {{gate_up}, {y}});
}

void SwiGluBackward(Trace& trace, Tensor dy, Tensor gate_up, Tensor d_gate_up) {
  Require(IsFloat(dy) && dy.contiguous() && Is(gate_up, dy.dtype, dy.rows, 2 * dy.cols) && IsLike(d_gate_up, gate_up),
          kSwiGluBackward,
          "gate_up and d_gate_up must be (tokens, 2 * ffn) for a dy of (tokens, ffn), all of one dtype",
          {{"dy", dy}, {"gate_up", gate_up}, {"d_gate_up", d_gate_up}});
  trace.Call(kSwiGluBackward, {{dy, gate_up}, {d_gate_up}});
}

void Gelu(Trace& trace, Tensor x, Tensor y) {
  Require(IsFloat(x) && x.contiguous() && IsLike(y, x), kGelu, "x and y must be alike", {{"x", x}, {"y", y}});
  trace.Call(kGelu, {{x}, {y}});
}

void GeluBackward(Trace& trace, Tensor dy, Tensor x, Tensor dx) {
  Require(IsFloat(x) && x.contiguous() && IsLike(dy, x) && IsLike(dx, x), kGeluBackward, "dy, x and dx must be alike",
          {{"dy", dy}, {"x", x}, {"dx", dx}});
  trace.Call(kGeluBackward, {{dy, x}, {dx}});
}

void DropoutAdd(Trace& trace, Tensor x, Tensor residual, Tensor out, double p, RandomStream stream) {
  Require(IsFloat(x) && x.contiguous() && IsLike(residual, x) && IsLike(out, x) && p >= 0 && p < 1, kDropoutAdd,
          "x, residual and out must be alike, and p in [0, 1)", {{"x", x}, {"residual", residual}, {"out", out}});
  const Tensor inputs = p > 0 ? trace.Inputs() : Tensor{};
  trace.Call(kDropoutAdd, {{x, residual, inputs}, {out}}, {}, {p, stream.id, stream.first});
}

void DropoutBackward(Trace& trace, Tensor dy, Tensor dx, double p, RandomStream stream) {
  Require(IsFloat(dy) && dy.contiguous() && IsLike(dx, dy) && p >= 0 && p < 1, kDropoutBackward,
          "dy and dx must be alike, and p in [0, 1)", {{"dy", dy}, {"dx", dx}});
  const Tensor inputs = p > 0 ? trace.Inputs() : Tensor{};
  trace.Call(kDropoutBackward, {{dy, inputs}, {dx}}, {}, {p, stream.id, stream.first});
}

void Fill(Trace& trace, Tensor x, double value, Tensor factor) {
  Require(IsFloat(x) && x.contiguous() && (!factor.defined() || factor.dtype == DType::kF32), kFill,
          "x must be contiguous, factor fp32", {{"x", x}, {"factor", factor}});
  trace.Call(kFill, {{factor}, {x}}, {}, {value});
}

void FillUniform(Trace& trace, Tensor x, RandomStream stream) {
  Require(IsFloat(x) && x.contiguous(), kFillUniform, "x must be contiguous and floating", {{"x", x}});
  trace.Call(kFillUniform, {{trace.Inputs()}, {x}}, {}, {stream.id, stream.first});
}

void ColumnSum(Trace& trace, Tensor x, Tensor sum, bool accumulate) {
  Require(IsFloat(x) && IsFloat(sum) && Is(sum, sum.dtype, 1, x.cols) && x.row_stride >= x.cols, kColumnSum,
          "sum must be (1, cols) for an x of (rows, cols)", {{"x", x}, {"sum", sum}});
  const Tensor parts = trace.Temporary(DType::kF32, RowParts(x.rows), PaddedCols(x.cols), Category::kWorkspace);
  trace.Call(kColumnSum, {{x, accumulate ? sum : Tensor{}}, {sum}, {parts}}, {}, {accumulate});
}

}  // namespace ridgeline::engine
