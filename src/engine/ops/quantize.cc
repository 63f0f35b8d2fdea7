#include "engine/ops/quantize.h"

#include "engine/ops/attrs.h"
#include "engine/ops/record.h"

namespace ridgeline {

const OpDef kQuantize = {"quantize"};
const OpDef kDequantize = {"dequantize"};
const OpDef kTransposeQuantized = {"transpose_quantized"};
const OpDef kUpdateDelayedScales = {"update_delayed_scales"};

namespace {

bool Fits(const QuantizedTensor& q, int64_t outer, int64_t inner) {
  const Quantizer& by = q.quantizer;
  return by.valid() && q.outer == outer && q.inner == inner && Is(q.codes, DType::kU8, outer, by.CodeCols(inner)) &&
         (!HasBlocks(by.scaling) || Is(q.scales, DType::kU8, outer, by.ScaleCols(inner))) &&
         (!by.has_tensor_scale() || IsScalar(q.tensor_scale));
}

// Whether a matrix has the same codes from both sides.
bool Turns(const Quantizer& quantizer) {
  return !HasBlocks(quantizer.scaling) || quantizer.scaling == Scaling::kBlock16x16;
}

}  // namespace

QuantizedTensor NewQuantized(Trace& trace, const Quantizer& quantizer, int64_t outer, int64_t inner, Category category,
                             bool persistent) {
  const auto add = [&](DType dtype, int64_t rows, int64_t cols) {
    return persistent ? trace.Persistent(dtype, rows, cols, category) : trace.Temporary(dtype, rows, cols, category);
  };
  QuantizedTensor q = {quantizer, outer, inner, add(DType::kU8, outer, quantizer.CodeCols(inner)), {}, {}};
  if (HasBlocks(quantizer.scaling)) q.scales = add(DType::kU8, outer, quantizer.ScaleCols(inner));
  if (quantizer.has_tensor_scale()) q.tensor_scale = add(DType::kF32, 1, 1);
  return q;
}

void Quantize(Trace& trace, Tensor x, const QuantizedTensor* row, const QuantizedTensor* col, DelayedScale delayed,
              RandomStream stream) {
  Require(row != nullptr || col != nullptr, kQuantize, "at least one orientation must be asked for", {{"x", x}});
  const QuantizedTensor none;
  const QuantizedTensor& any = row != nullptr ? *row : *col;
  const QuantizedTensor& by_row = row != nullptr ? *row : none;
  const QuantizedTensor& by_col = col != nullptr ? *col : none;
  Require(IsFloat(x) && x.row_stride >= x.cols, kQuantize, "x must be (rows, cols), fp32 or bf16", {{"x", x}});
  Require(row == nullptr || (Fits(*row, x.rows, x.cols) && !row->quantizer.hadamard), kQuantize,
          "the rowwise orientation must be a valid quantizer's, without a transform, of x's shape",
          {{"x", x}, {"codes", by_row.codes}, {"scales", by_row.scales}});
  Require(col == nullptr || (Fits(*col, x.cols, x.rows) && (!col->quantizer.hadamard || x.dtype == DType::kBF16)),
          kQuantize,
          "the columnwise orientation must be a valid quantizer's, of x's shape transposed; bf16 to transform",
          {{"x", x}, {"codes", by_col.codes}, {"scales", by_col.scales}});
  Require(row == nullptr || col == nullptr ||
              (row->quantizer.format == col->quantizer.format && row->quantizer.scaling == col->quantizer.scaling),
          kQuantize, "both orientations must have one format and one scaling", {{"x", x}});
  const bool stochastic =
      by_row.quantizer.rounding == Rounding::kStochastic || by_col.quantizer.rounding == Rounding::kStochastic;
  Require(col == nullptr || !stochastic || !Turns(any.quantizer), kQuantize,
          "stochastic rounding is of rows alone where columns have their scales: transpose them", {{"x", x}});
  const Scaling scaling = any.quantizer.scaling;
  Require(scaling != Scaling::kDelayed || (IsScalar(delayed.scale) && IsScalar(delayed.amax)), kQuantize,
          "delayed scaling needs a scale and an amax", {{"scale", delayed.scale}, {"amax", delayed.amax}});

  // The amaxes of parts of x, as they are and transformed.
  Tensor amaxes;
  if (scaling != Scaling::kBlock32) {
    amaxes = trace.Temporary(DType::kF32, 2, QuantizeTiles(x.rows, x.cols), Category::kWorkspace);
  }
  const bool reads_twice = scaling != Scaling::kBlock32 && scaling != Scaling::kDelayed;
  const Cost cost = Moves({x, reads_twice ? x : Tensor{}, delayed.scale, delayed.amax},
                          {by_row.codes, by_row.scales, by_row.tensor_scale, by_col.codes, by_col.scales,
                           by_col.tensor_scale, delayed.amax});
  trace.Call(kQuantize,
             {x, by_row.codes, by_row.scales, by_row.tensor_scale, by_col.codes, by_col.scales, by_col.tensor_scale,
              delayed.scale, delayed.amax, amaxes},
             cost, QuantizeAttrs{by_row.quantizer, by_col.quantizer, stream.id});
}

void Dequantize(Trace& trace, const QuantizedTensor& q, Tensor y) {
  Require(IsFloat(y) && Fits(q, y.rows, y.cols) && !q.quantizer.hadamard && y.row_stride >= y.cols, kDequantize,
          "y must be (outer, inner), fp32 or bf16, of a tensor that was not transformed",
          {{"y", y}, {"codes", q.codes}, {"scales", q.scales}});
  trace.Call(kDequantize, {q.codes, q.scales, q.tensor_scale, y}, Moves({q.codes, q.scales, q.tensor_scale}, {y}),
             q.quantizer);
}

QuantizedTensor Transposed(Trace& trace, const QuantizedTensor& q, Category category) {
  Require(Fits(q, q.outer, q.inner) && Turns(q.quantizer), kTransposeQuantized,
          "columns must have the scales of rows: one for all, or those of 16x16 blocks",
          {{"codes", q.codes}, {"scales", q.scales}});
  QuantizedTensor turned = {q.quantizer, q.inner, q.outer, {}, {}, q.tensor_scale};
  turned.codes = trace.Temporary(DType::kU8, q.inner, q.quantizer.CodeCols(q.outer), category);
  if (q.scales.defined())
    turned.scales = trace.Temporary(DType::kU8, q.inner, q.quantizer.ScaleCols(q.outer), category);
  trace.Call(kTransposeQuantized, {q.codes, q.scales, turned.codes, turned.scales},
             Moves({q.codes, q.scales}, {turned.codes, turned.scales}), q.quantizer);
  return turned;
}

void UpdateDelayedScales(Trace& trace, Tensor history, Tensor scale, Tensor amax, Format format) {
  Require(Is(history, DType::kF32, history.rows, history.cols) && history.cols > 0 &&
              Is(scale, DType::kF32, history.rows, 1) && IsLike(amax, scale),
          kUpdateDelayedScales, "history must be (slots, length), scale and amax (slots, 1), all fp32",
          {{"history", history}, {"scale", scale}, {"amax", amax}});
  trace.Call(kUpdateDelayedScales, {history, scale, amax}, Moves({history, scale, amax}, {history, scale, amax}),
             format);
}

}  // namespace ridgeline
