#include "engine/ops/fused_quantize.h"

#include "engine/ops/record.h"

namespace ridgeline::engine {

const Op<ActivationQuantizeOperands> kSwiGluQuantize{OpDef::Pass("swiglu_quantize", kBetweenProducts)};
const Op<ActivationQuantizeOperands> kGeluQuantize{OpDef::Pass("gelu_quantize", kBetweenProducts)};
const Op<SwiGluBackwardQuantizeOperands> kSwiGluBackwardQuantize{
    OpDef::Pass("swiglu_backward_quantize", kBetweenProducts)};
const Op<SwiGluBackwardQuantizeMxOperands, ScaleRule> kSwiGluBackwardQuantizeMx{
    OpDef::Pass("swiglu_backward_quantize_mx", kBetweenProducts)};
const Op<GeluBackwardQuantizeOperands, GeluBackwardQuantizeAttrs> kGeluBackwardQuantize{
    OpDef::Pass("gelu_backward_quantize", kBetweenProducts)};
const Op<NormQuantizeOperands, NormAttrs> kRmsNormQuantize{OpDef::Pass("rms_norm_quantize", kBetweenProducts)};
const Op<NormQuantizeOperands, NormAttrs> kLayerNormQuantize{OpDef::Pass("layer_norm_quantize", kBetweenProducts)};
const Op<ResidualNormQuantizeOperands, ResidualNormAttrs> kResidualRmsNormQuantize{
    OpDef::Pass("residual_rms_norm_quantize", kBetweenProducts)};
const Op<ResidualNormQuantizeOperands, ResidualNormAttrs> kResidualLayerNormQuantize{
    OpDef::Pass("residual_layer_norm_quantize", kBetweenProducts)};

namespace {

bool AreCodes(const QuantizedTensor& q, int64_t outer, int64_t inner, const Quantizer& quantizer = kFusedQuantizer) {
  const bool blocks = HasBlocks(quantizer.scaling);
  return q.quantizer == quantizer && q.outer == outer && q.inner == inner &&
         Is(q.codes, DType::kU8, outer, quantizer.CodeCols(inner)) && q.codes.offset == 0 &&
         (!blocks || Is(q.scales, DType::kU8, outer, quantizer.ScaleCols(inner))) &&
         (blocks || IsScalar(q.tensor_scale));
}

void RequireScale(const OpDef& op, const DelayedScale& delayed) {
  Require(IsScalar(delayed.scale) && IsScalar(delayed.amax), op, "delayed scaling needs a scale and an amax",
          {{"scale", delayed.scale}, {"amax", delayed.amax}});
}

// `numbers_each`: how many numbers of x make one of the result.
void QuantizeActivation(Trace& trace, const Op<ActivationQuantizeOperands>& op, int64_t numbers_each, Tensor x,
                        const QuantizedTensor* row, const QuantizedTensor* col, const DelayedScale& delayed) {
  const QuantizedTensor none;
  const QuantizedTensor& by_row = row != nullptr ? *row : none;
  const QuantizedTensor& by_col = col != nullptr ? *col : none;
  const int64_t cols = x.cols / numbers_each;
  Require(row != nullptr || col != nullptr, op, "at least one orientation must be asked for", {{"x", x}});
  Require(Is(x, DType::kBF16, x.rows, numbers_each * cols) && (row == nullptr || AreCodes(by_row, x.rows, cols)) &&
              (col == nullptr || AreCodes(by_col, cols, x.rows)),
          op, "x must be bf16, and the codes those of delayed scaling in E4M3, of the activation's shape",
          {{"x", x}, {"row", by_row.codes}, {"col", by_col.codes}});
  RequireScale(op, delayed);
  trace.Call(op, {{x, delayed.scale, delayed.amax}, {by_row.stored(), by_col.stored(), delayed.amax}});
}

void QuantizeNorm(Trace& trace, bool center, const NormQuantizeOperands& on, const QuantizedTensor& y, double eps,
                  const ResidualSum& sum) {
  const auto& op = center ? kLayerNormQuantize : kRmsNormQuantize;
  const auto& [x, weight, bias, scale, amax] = on.reads;
  const auto is_of_columns = [cols = x.cols](const Tensor& t) { return Is(t, DType::kBF16, 1, cols); };
  const auto is_of_rows = [rows = x.rows](const Tensor& t) { return Is(t, DType::kF32, 1, rows); };
  Require(Is(x, DType::kBF16, x.rows, x.cols) && is_of_columns(weight) && (!center || is_of_columns(bias)) &&
              (!center || is_of_rows(on.writes.mean)) && is_of_rows(on.writes.rstd) && AreCodes(y, x.rows, x.cols),
          op,
          "x must be (tokens, hidden), weight and bias (1, hidden), all bf16, mean and rstd (1, tokens) in fp32, and y "
          "as x, of delayed scaling in E4M3",
          {{"x", x},
           {"weight", weight},
           {"bias", bias},
           {"mean", on.writes.mean},
           {"rstd", on.writes.rstd},
           {"y", y.codes}});
  RequireScale(op, {scale, amax});
  if (!sum.defined()) return trace.Call(op, on, {}, {eps});
  const auto& summed = center ? kResidualLayerNormQuantize : kResidualRmsNormQuantize;
  const Tensor inputs = InputsOf(trace, summed, sum, x);
  trace.Call(summed,
             {{sum.branch, sum.residual, inputs, weight, bias, scale, amax},
              {x, on.writes.y, on.writes.delayed_amax, on.writes.mean, on.writes.rstd}},
             {}, {eps, sum.attrs()});
}

}  // namespace

void SwiGluQuantize(Trace& trace, Tensor gate_up, const QuantizedTensor* row, const QuantizedTensor* col,
                    DelayedScale delayed) {
  QuantizeActivation(trace, kSwiGluQuantize, 2, gate_up, row, col, delayed);
}

void GeluQuantize(Trace& trace, Tensor x, const QuantizedTensor* row, const QuantizedTensor* col,
                  DelayedScale delayed) {
  QuantizeActivation(trace, kGeluQuantize, 1, x, row, col, delayed);
}

void SwiGluBackwardQuantize(Trace& trace, Tensor dy, Tensor gate_up, const QuantizedTensor& row,
                            const QuantizedTensor& col, DelayedScale delayed) {
  const auto& op = kSwiGluBackwardQuantize;
  Require(Is(dy, DType::kBF16, dy.rows, dy.cols) && Is(gate_up, DType::kBF16, dy.rows, 2 * dy.cols) &&
              MakesGateGradientCodes(row.quantizer, dy.cols) && AreCodes(row, dy.rows, 2 * dy.cols, row.quantizer) &&
              AreCodes(col, 2 * dy.cols, dy.rows, row.quantizer),
          op,
          "dy must be (tokens, ffn) and gate_up (tokens, 2 ffn), both bf16, and the codes those of delayed scaling in "
          "E5M2, or of mxfp8 with whole blocks, of gate_up's shape",
          {{"dy", dy}, {"gate_up", gate_up}, {"row", row.codes}, {"col", col.codes}});
  // A pass for the gradient and one for its codes would write and read the gradient, which is as large as gate_up.
  const Cost cost = {.spared_bytes = 2 * static_cast<double>(gate_up.bytes())};
  if (HasBlocks(row.quantizer.scaling)) {
    trace.Call(kSwiGluBackwardQuantizeMx, {{dy, gate_up}, {row.stored(), col.stored()}}, cost,
               row.quantizer.scale_rule);
    return;
  }
  RequireScale(op, delayed);
  trace.Call(op, {{dy, gate_up, delayed.scale, delayed.amax}, {row.stored(), col.stored(), delayed.amax}}, cost);
}

void GeluBackwardQuantize(Trace& trace, Tensor dy, Tensor x, const QuantizedTensor& row, const QuantizedTensor& col,
                          DelayedScale delayed, Tensor dbias, bool accumulate) {
  const auto& op = kGeluBackwardQuantize;
  Require(Is(x, DType::kBF16, x.rows, x.cols) && IsLike(dy, x) && MakesGradientCodes(row.quantizer) &&
              AreCodes(row, x.rows, x.cols, row.quantizer) && AreCodes(col, x.cols, x.rows, row.quantizer) &&
              (!dbias.defined() || (IsFloat(dbias) && Is(dbias, dbias.dtype, 1, x.cols))),
          op,
          "dy and x must be (tokens, ffn) bf16, the codes those of delayed scaling in E5M2 or of mxfp8, of x's shape, "
          "and dbias (1, ffn)",
          {{"dy", dy}, {"x", x}, {"row", row.codes}, {"col", col.codes}, {"dbias", dbias}});
  const bool blocks = HasBlocks(row.quantizer.scaling);
  if (!blocks) RequireScale(op, delayed);
  Tensor parts;
  if (dbias.defined()) {
    const int64_t tiles = (x.rows + kQuantizeTileRows - 1) / kQuantizeTileRows;
    parts = trace.Temporary(DType::kF32, tiles, PaddedCols(x.cols), Category::kWorkspace);
  }
  // Separate passes would write the gradient, and read it for the codes and for the bias.
  const Cost cost = {.spared_bytes = static_cast<double>(x.bytes()) * (dbias.defined() ? 3 : 2)};
  const Tensor scale = blocks ? Tensor{} : delayed.scale;
  const Tensor amax = blocks ? Tensor{} : delayed.amax;
  trace.Call(op,
             {{dy, x, scale, amax, accumulate ? dbias : Tensor{}}, {row.stored(), col.stored(), amax, dbias}, {parts}},
             cost, {row.quantizer, accumulate});
}

void RmsNormQuantize(Trace& trace, Tensor x, Tensor weight, const QuantizedTensor& y, Tensor rstd, double eps,
                     DelayedScale delayed, const ResidualSum& sum) {
  QuantizeNorm(trace, false, {{x, weight, {}, delayed.scale, delayed.amax}, {y.stored(), delayed.amax, {}, rstd}}, y,
               eps, sum);
}

void LayerNormQuantize(Trace& trace, Tensor x, Tensor weight, Tensor bias, const QuantizedTensor& y, Tensor mean,
                       Tensor rstd, double eps, DelayedScale delayed, const ResidualSum& sum) {
  QuantizeNorm(trace, true, {{x, weight, bias, delayed.scale, delayed.amax}, {y.stored(), delayed.amax, mean, rstd}}, y,
               eps, sum);
}

}  // namespace ridgeline::engine
