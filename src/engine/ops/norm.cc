#include "engine/ops/norm.h"

#include <algorithm>

#include "engine/ops/record.h"

namespace ridgeline::engine {

const Op<ResidualNormOperands, ResidualNormAttrs> kResidualRmsNorm{OpDef::Pass("residual_rms_norm", kBetweenProducts)};
const Op<ResidualNormOperands, ResidualNormAttrs> kResidualLayerNorm{
    OpDef::Pass("residual_layer_norm", kBetweenProducts)};
const Op<RmsNormOperands, NormAttrs> kRmsNorm{OpDef::Pass("rms_norm", kBetweenProducts)};
const Op<RmsNormBackwardOperands, NormBackwardAttrs> kRmsNormBackward{
    OpDef::Pass("rms_norm_backward", kBetweenProducts)};
const Op<LayerNormOperands, NormAttrs> kLayerNorm{OpDef::Pass("layer_norm", kBetweenProducts)};
const Op<LayerNormBackwardOperands, NormBackwardAttrs> kLayerNormBackward{
    OpDef::Pass("layer_norm_backward", kBetweenProducts)};

namespace {

// The number of parts in which a backward pass sums over rows. On a GPU, each block has one part. There are as many as
// an H200's 132 multiprocessors run at once: 8 each for rows of 2 KiB, 4 for 4 KiB, 2 for longer ones. (With 64, as on
// CPUs, half of them had none, and (8192, 2048) in bf16 took 99 us.)
int64_t NormParts(const Trace& trace, const Tensor& x) {
  if (!trace.device().cuda()) return RowParts(x.rows);
  const int64_t blocks = 132 * std::clamp<int64_t>((16 << 10) / (x.cols * SizeOf(x.dtype)), 2, 8);
  return std::clamp<int64_t>((x.rows + 7) / 8, 1, blocks);
}

}  // namespace

Tensor InputsOf(Trace& trace, const OpDef& op, const ResidualSum& sum, const Tensor& x) {
  Require(IsLike(sum.branch, x) && IsLike(sum.residual, x) && sum.p >= 0 && sum.p < 1, op,
          "branch and residual must be as x, and p in [0, 1)",
          {{"branch", sum.branch}, {"residual", sum.residual}, {"x", x}});
  return sum.p > 0 ? trace.Inputs() : Tensor{};
}

void RmsNorm(Trace& trace, Tensor x, Tensor weight, Tensor y, Tensor rstd, double eps, const ResidualSum& sum) {
  Require(IsFloat(x) && x.contiguous() && IsLike(y, x) && Is(weight, x.dtype, 1, x.cols) &&
              Is(rstd, DType::kF32, 1, x.rows),
          kRmsNorm, "y must be as x (tokens, hidden), weight (1, hidden) of its dtype, rstd (1, tokens) in fp32",
          {{"x", x}, {"weight", weight}, {"y", y}, {"rstd", rstd}});
  if (!sum.defined()) return trace.Call(kRmsNorm, {{x, weight}, {y, rstd}}, {}, {eps});
  const Tensor inputs = InputsOf(trace, kResidualRmsNorm, sum, x);
  trace.Call(kResidualRmsNorm, {{sum.branch, sum.residual, inputs, weight, {}}, {x, y, {}, rstd}}, {},
             {eps, sum.attrs()});
}

void RmsNormBackward(Trace& trace, Tensor dy, Tensor x, Tensor weight, Tensor rstd, Tensor dx, bool overwrite_dx,
                     Tensor dweight, bool accumulate) {
  Require(IsFloat(x) && x.contiguous() && IsLike(dy, x) && IsLike(dx, x) && Is(weight, x.dtype, 1, x.cols) &&
              Is(rstd, DType::kF32, 1, x.rows) && IsFloat(dweight) && Is(dweight, dweight.dtype, 1, x.cols),
          kRmsNormBackward,
          "dy and dx must be as x (tokens, hidden), weight (1, hidden) of its dtype, dweight (1, hidden), rstd (1, "
          "tokens) in fp32",
          {{"dy", dy}, {"x", x}, {"weight", weight}, {"rstd", rstd}, {"dx", dx}, {"dweight", dweight}});
  const Tensor none;
  const Tensor parts = trace.Temporary(DType::kF32, NormParts(trace, x), PaddedCols(x.cols), Category::kWorkspace);
  trace.Call(kRmsNormBackward,
             {{dy, x, weight, rstd, overwrite_dx ? none : dx, accumulate ? dweight : none}, {dx, dweight}, {parts}}, {},
             {overwrite_dx, accumulate});
}

void LayerNorm(Trace& trace, Tensor x, Tensor weight, Tensor bias, Tensor y, Tensor mean, Tensor rstd, double eps,
               const ResidualSum& sum) {
  Require(
      IsFloat(x) && x.contiguous() && IsLike(y, x) && Is(weight, x.dtype, 1, x.cols) && Is(bias, x.dtype, 1, x.cols) &&
          Is(mean, DType::kF32, 1, x.rows) && Is(rstd, DType::kF32, 1, x.rows),
      kLayerNorm,
      "y must be as x (tokens, hidden), weight and bias (1, hidden) of its dtype, mean and rstd (1, tokens) in fp32",
      {{"x", x}, {"weight", weight}, {"bias", bias}, {"y", y}, {"mean", mean}, {"rstd", rstd}});
  if (!sum.defined()) return trace.Call(kLayerNorm, {{x, weight, bias}, {y, mean, rstd}}, {}, {eps});
  const Tensor inputs = InputsOf(trace, kResidualLayerNorm, sum, x);
  trace.Call(kResidualLayerNorm, {{sum.branch, sum.residual, inputs, weight, bias}, {x, y, mean, rstd}}, {},
             {eps, sum.attrs()});
}

void LayerNormBackward(Trace& trace, Tensor dy, Tensor x, Tensor weight, Tensor mean, Tensor rstd, Tensor dx,
                       bool overwrite_dx, Tensor dweight, Tensor dbias, bool accumulate) {
  Require(IsFloat(x) && x.contiguous() && IsLike(dy, x) && IsLike(dx, x) && Is(weight, x.dtype, 1, x.cols) &&
              Is(mean, DType::kF32, 1, x.rows) && Is(rstd, DType::kF32, 1, x.rows) && IsFloat(dweight) &&
              Is(dweight, dweight.dtype, 1, x.cols) && IsLike(dbias, dweight),
          kLayerNormBackward,
          "dy and dx must be as x (tokens, hidden), weight (1, hidden) of its dtype, dweight and dbias (1, hidden) of "
          "one dtype, mean and rstd (1, tokens) in fp32",
          {{"dy", dy},
           {"x", x},
           {"weight", weight},
           {"mean", mean},
           {"rstd", rstd},
           {"dx", dx},
           {"dweight", dweight},
           {"dbias", dbias}});
  const Tensor none;
  const Tensor parts = trace.Temporary(DType::kF32, 2 * NormParts(trace, x), PaddedCols(x.cols), Category::kWorkspace);
  trace.Call(
      kLayerNormBackward,
      {{dy, x, weight, mean, rstd, overwrite_dx ? none : dx, accumulate ? dweight : none, accumulate ? dbias : none},
       {dx, dweight, dbias},
       {parts}},
      {}, {overwrite_dx, accumulate});
}

}  // namespace ridgeline::engine
