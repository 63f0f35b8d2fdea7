#include "engine/ops/quantize.h"

#include <fmt/format.h>

#include <string_view>

#include "engine/ops/record.h"

namespace ridgeline::engine {

namespace {

constexpr std::string_view kOwnPass = "a separate pass: the kernel that makes the numbers could write their codes";
constexpr std::string_view kTwoPasses = "two passes of their own: the scale needs the largest of the numbers first";

uint32_t VariantOfQuantize(const OpCall& call) {
  const QuantizeAttrs& attrs = call.attrs(kQuantize);
  const QuantizeOperands on = call.operands(kQuantize);
  return VariantOfTwo(on.writes.row.codes.defined() ? VariantOf(attrs.row) : 0,
                      on.writes.col.codes.defined() ? VariantOf(attrs.col) : 0);
}
uint32_t VariantOfOne(const OpCall& call) { return VariantOf(call.attrs<Quantizer>()); }
std::string NameOfOne(uint32_t variant) { return " " + QuantizerName(variant); }

}  // namespace

const Op<QuantizeOperands, QuantizeAttrs> kQuantize{
    OpDef::Pass("quantize", BesideBudget(kOwnPass, kTwoPasses), {VariantOfQuantize, NameOfTwo})};
const Op<DequantizeOperands, Quantizer> kDequantize{
    OpDef::Pass("dequantize", BesideBudget(kOwnPass), {VariantOfOne, NameOfOne})};
const Op<TransposeQuantizedOperands, Quantizer> kTransposeQuantized{
    OpDef::Pass("transpose_quantized", BesideBudget(kOwnPass), {VariantOfOne, NameOfOne})};
const Op<UpdateDelayedScalesOperands, Format> kUpdateDelayedScales{
    OpDef::Pass("update_delayed_scales", BesideBudget("scales of the next step, from a history of each"))};

namespace {

constexpr unsigned kQuantizerBits = 7;

bool Fits(const QuantizedTensor& q, int64_t outer, int64_t inner) {
  const Quantizer& by = q.quantizer;
  return by.valid() && q.outer == outer && q.inner == inner && Is(q.codes, DType::kU8, outer, by.CodeCols(inner)) &&
         (!HasBlocks(by.scaling) || Is(q.scales, DType::kU8, outer, by.ScaleCols(inner))) &&
         (!by.has_tensor_scale() || IsScalar(q.tensor_scale));
}

int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

// Creates the storages without the tensor scale.
QuantizedTensor NewCodes(Trace& trace, const Quantizer& quantizer, int64_t outer, int64_t inner, Category category,
                         bool persistent) {
  const auto add = [&](int64_t rows, int64_t cols) {
    return persistent ? trace.Persistent(DType::kU8, rows, cols, category)
                      : trace.Temporary(DType::kU8, rows, cols, category);
  };
  QuantizedTensor q = {quantizer, outer, inner, add(outer, quantizer.CodeCols(inner)), {}, {}};
  if (HasBlocks(quantizer.scaling)) {
    const int64_t cols = quantizer.ScaleCols(inner);
    q.scales = add(RoundUp(outer, kScaleTileRows), RoundUp(cols, kScaleTileCols));
    q.scales.rows = outer;
    q.scales.cols = q.scales.row_stride = cols;
  }
  return q;
}

// Whether rows and columns of a matrix have the same codes.
bool Turns(const Quantizer& quantizer) {
  return !HasBlocks(quantizer.scaling) || quantizer.scaling == Scaling::kBlock16x16;
}

}  // namespace

uint32_t VariantOf(const Quantizer& quantizer) {
  return static_cast<uint32_t>(quantizer.format) | static_cast<uint32_t>(quantizer.scaling) << 2U |
         static_cast<uint32_t>(quantizer.rounding) << 5U | static_cast<uint32_t>(quantizer.hadamard) << 6U;
}

std::string QuantizerName(uint32_t variant) {
  static constexpr std::string_view kFormats[] = {"e4m3", "e5m2", "e2m1", "?"};
  static constexpr std::string_view kScalings[] = {"delayed",    "current", "block32", "block16",
                                                   "block16x16", "?",       "?",       "?"};
  return fmt::format("{}.{}{}{}", kFormats[variant & 3U], kScalings[variant >> 2U & 7U],
                     (variant >> 5U & 1U) != 0 ? ".stochastic" : "", (variant >> 6U & 1U) != 0 ? ".hadamard" : "");
}

uint32_t VariantOfTwo(uint32_t first, uint32_t second) { return first | second << kQuantizerBits; }

std::string NameOfTwo(uint32_t variant) {
  constexpr uint32_t kOne = (1U << kQuantizerBits) - 1;
  return fmt::format(" {} {}", QuantizerName(variant & kOne), QuantizerName(variant >> kQuantizerBits));
}

QuantizedTensor NewQuantized(Trace& trace, const Quantizer& quantizer, int64_t outer, int64_t inner, Category category,
                             bool persistent) {
  QuantizedTensor q = NewCodes(trace, quantizer, outer, inner, category, persistent);
  if (quantizer.has_tensor_scale()) {
    q.tensor_scale =
        persistent ? trace.Persistent(DType::kF32, 1, 1, category) : trace.Temporary(DType::kF32, 1, 1, category);
  }
  return q;
}

void Quantize(Trace& trace, Tensor x, const QuantizedTensor* row, const QuantizedTensor* col, DelayedScale delayed,
              RandomStream stream) {
  Require(row != nullptr || col != nullptr, kQuantize, "at least one orientation must be asked for", {{"x", x}});
  const QuantizedTensor none;
  const QuantizedTensor& any = row != nullptr ? *row : *col;
  const QuantizedTensor& by_row = row != nullptr ? *row : none;
  const QuantizedTensor& by_col = col != nullptr ? *col : none;
  Require(IsF32OrBf16(x) && x.row_stride >= x.cols, kQuantize, "x must be (rows, cols), fp32 or bf16", {{"x", x}});
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

  Tensor amaxes;
  if (scaling != Scaling::kBlock32) {
    amaxes = trace.Temporary(DType::kF32, 2, QuantizeTiles(x.rows, x.cols), Category::kWorkspace);
  }
  const bool reads_twice = scaling != Scaling::kBlock32 && scaling != Scaling::kDelayed;
  trace.Call(kQuantize,
             {{x, delayed.scale, delayed.amax, stochastic ? trace.Inputs() : Tensor{}},
              {by_row.stored(), by_col.stored(), delayed.amax},
              {amaxes}},
             {.more_bytes = reads_twice ? static_cast<double>(x.bytes()) : 0},
             {by_row.quantizer, by_col.quantizer, stream.id});
}

void Dequantize(Trace& trace, const QuantizedTensor& q, Tensor y) {
  Require(IsF32OrBf16(y) && Fits(q, y.rows, y.cols) && !q.quantizer.hadamard && y.row_stride >= y.cols, kDequantize,
          "y must be (outer, inner), fp32 or bf16, of a tensor that was not transformed",
          {{"y", y}, {"codes", q.codes}, {"scales", q.scales}});
  trace.Call(kDequantize, {{q.stored()}, {y}}, {}, q.quantizer);
}

QuantizedTensor Transposed(Trace& trace, const QuantizedTensor& q, Category category) {
  Require(Fits(q, q.outer, q.inner) && Turns(q.quantizer), kTransposeQuantized,
          "columns must have the scales of rows: one for all, or those of 16x16 blocks",
          {{"codes", q.codes}, {"scales", q.scales}});
  QuantizedTensor turned = NewCodes(trace, q.quantizer, q.inner, q.outer, category, false);
  turned.tensor_scale = q.tensor_scale;
  trace.Call(kTransposeQuantized, {{q.codes, q.scales}, {turned.codes, turned.scales}}, {}, q.quantizer);
  return turned;
}

void UpdateDelayedScales(Trace& trace, Tensor history, Tensor scale, Tensor amax, Format format) {
  Require(Is(history, DType::kF32, history.rows, history.cols) && history.cols > 0 &&
              Is(scale, DType::kF32, history.rows, 1) && IsLike(amax, scale),
          kUpdateDelayedScales, "history must be (slots, length), scale and amax (slots, 1), all fp32",
          {{"history", history}, {"scale", scale}, {"amax", amax}});
  trace.Call(kUpdateDelayedScales, {{history, scale, amax}, {history, scale, amax}}, {}, format);
}

}  // namespace ridgeline::engine
