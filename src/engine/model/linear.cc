#include "engine/model/linear.h"

#include <cassert>
#include <utility>

#include "engine/ops/elementwise.h"
#include "engine/ops/fused_quantize.h"
#include "engine/ops/gemm.h"

namespace ridgeline {
namespace {

// Streams for stochastic rounding lie above those of dropouts, which count up from 0: gradients first, then weights.
constexpr int64_t kRoundingStreams = int64_t{1} << 30;
constexpr uint32_t kWeightStreams = uint32_t{1} << 31;

bool Quantizes(const RunSpec& spec, const Recipe& recipe, int64_t layer) {
  return recipe.linear != nullptr && layer >= spec.bf16_first_layers && layer < spec.layers - spec.bf16_last_layers;
}

}  // namespace

std::vector<QuantizedWeight> QuantizedWeights(const ModelShape& shape, const RunSpec& spec, const Recipe& recipe,
                                              const DelayedScales& scales) {
  std::vector<QuantizedWeight> weights;
  if (spec.primary_weights != "quantized") return weights;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    if (!Quantizes(spec, recipe, layer)) continue;
    const LayerParameters& p = shape.layers[static_cast<size_t>(layer)];
    for (const auto& [which, parameter] : {std::pair{LinearLayer::kQkv, p.qkv},
                                           {LinearLayer::kOut, p.out},
                                           {LinearLayer::kUp, p.up},
                                           {LinearLayer::kDown, p.down}}) {
      QuantizedWeight weight;
      weight.parameter = parameter;
      assert(recipe.linear->w_fprop == recipe.linear->w_dgrad);
      weight.quantizer = recipe.linear->w_fprop;
      if (recipe.master == Master::kNone) weight.quantizer.rounding = Rounding::kStochastic;
      weight.delayed = scales.Weight(layer, which);
      weight.stream = kWeightStreams + static_cast<uint32_t>(parameter);
      weights.push_back(weight);
    }
  }
  return weights;
}

Linears::Linears(Trace& trace, ParameterAccess& parameters, const ModelShape& shape, const RunSpec& spec,
                 const Recipe& recipe, const DelayedScales& scales)
    : trace_(trace), parameters_(parameters), shape_(shape), spec_(spec), recipe_(recipe), scales_(scales) {}

Linears::Weights Linears::WeightsOf(LinearLayer which) const {
  const LayerParameters& p = shape_.layers[static_cast<size_t>(trace_.layer())];
  Weights w{};
  switch (which) {
    case LinearLayer::kQkv:
      w = {p.qkv, p.qkv_bias, 0, 0};
      break;
    case LinearLayer::kOut:
      w = {p.out, p.out_bias, 0, 0};
      break;
    case LinearLayer::kUp:
      w = {p.up, p.up_bias, 0, 0};
      break;
    case LinearLayer::kDown:
      w = {p.down, p.down_bias, 0, 0};
      break;
  }
  const Parameter& weight = shape_.parameters[static_cast<size_t>(w.weight)];
  w.inputs = shape_.weights_in_out ? weight.rows : weight.cols;
  w.outputs = shape_.weights_in_out ? weight.cols : weight.rows;
  return w;
}

// Returns (outputs, inputs) if outputs_first, else (inputs, outputs).
QuantizedTensor Linears::WeightOperand(LinearLayer which, const Quantizer& quantizer, bool outputs_first) {
  const Weights w = WeightsOf(which);
  const bool as_stored = outputs_first != shape_.weights_in_out;
  if (const QuantizedTensor kept = parameters_.Codes(w.weight, as_stored); kept.codes.defined()) return kept;
  const QuantizedTensor q = NewQuantized(trace_, quantizer, outputs_first ? w.outputs : w.inputs,
                                         outputs_first ? w.inputs : w.outputs, Category::kParameters);
  Quantize(trace_, parameters_.Weight(w.weight), as_stored ? &q : nullptr, as_stored ? nullptr : &q,
           scales_.Weight(trace_.layer(), which), {});
  return q;
}

bool Linears::TakesCodes() const {
  return trace_.device().cuda() && Quantizes(spec_, recipe_, trace_.layer()) &&
         recipe_.linear->x_fprop == kFusedQuantizer && recipe_.linear->x_wgrad == kFusedQuantizer;
}

QuantizedTensor Linears::NewRows(LinearLayer which, int64_t tokens) {
  return NewQuantized(trace_, recipe_.linear->x_fprop, tokens, WeightsOf(which).inputs, Category::kActivations);
}

QuantizedTensor Linears::NewColumns(LinearLayer which, int64_t tokens) {
  return NewQuantized(trace_, recipe_.linear->x_wgrad, WeightsOf(which).inputs, tokens, Category::kActivations);
}

bool Linears::TakesGradientCodes(LinearLayer which) const {
  if (!trace_.device().cuda() || !Quantizes(spec_, recipe_, trace_.layer()) || WeightsOf(which).bias >= 0) return false;
  const LinearQuantizers& q = *recipe_.linear;
  return q.dy_dgrad == q.dy_wgrad && MakesGradientCodes(q.dy_dgrad, spec_.ffn);
}

LinearGradient Linears::NewGradientCodes(LinearLayer which, int64_t tokens) {
  const LinearQuantizers& q = *recipe_.linear;
  const int64_t outputs = WeightsOf(which).outputs;
  return {.rows = NewQuantized(trace_, q.dy_dgrad, tokens, outputs, Category::kActivations),
          .columns = NewQuantized(trace_, q.dy_wgrad, outputs, tokens, Category::kActivations)};
}

Tensor Linears::Forward(LinearLayer which, LinearInput& input, bool keep) {
  const Weights w = WeightsOf(which);
  const Tensor x = input.x;
  const bool has_codes = input.rows.codes.defined();
  const int64_t tokens = has_codes ? input.rows.outer : x.rows;
  const Tensor y = New(tokens, w.outputs);
  const Tensor bias = w.bias < 0 ? Tensor{} : parameters_.Weight(w.bias);
  if (!Quantizes(spec_, recipe_, trace_.layer())) {
    const Trans trans = shape_.weights_in_out ? Trans::kNo : Trans::kYes;
    Gemm(trace_, x, Trans::kNo, parameters_.Weight(w.weight), trans, y, false, bias, recipe_.tf32);
    return y;
  }
  const QuantizedTensor rows = has_codes ? input.rows : NewRows(which, tokens);
  if (!has_codes) {
    if (keep) input = {.columns = NewColumns(which, tokens)};
    Quantize(trace_, x, &rows, keep ? &input.columns : nullptr, InputScale(which), {});
  }
  Gemm(trace_, rows, WeightOperand(which, recipe_.linear->w_fprop, true), y, false, bias, true);
  return y;
}

Tensor Linears::Backward(LinearLayer which, int64_t micro_step, const LinearGradient& of_y, const LinearInput& input) {
  const Weights w = WeightsOf(which);
  const Tensor dy = of_y.dy;
  const bool has_codes = of_y.rows.codes.defined();
  const int64_t tokens = has_codes ? of_y.rows.outer : dy.rows;
  const Tensor dx = New(tokens, w.inputs);
  ParameterAccess::Gradient db;
  // Runs just before the weight's gradient, which reads the same numbers, so that a library may compute both at once.
  const auto sum_bias = [&] {
    if (w.bias < 0) return;
    db = parameters_.NextGradient(w.bias);
    ColumnSum(trace_, dy, db.tensor, db.accumulate);
  };
  if (!Quantizes(spec_, recipe_, trace_.layer())) {
    const Trans trans = shape_.weights_in_out ? Trans::kYes : Trans::kNo;
    Gemm(trace_, dy, Trans::kNo, parameters_.Weight(w.weight), trans, dx, false, {}, recipe_.tf32);
    sum_bias();
    const auto dw = parameters_.NextGradient(w.weight);
    const Tensor& first = shape_.weights_in_out ? input.x : dy;
    const Tensor& second = shape_.weights_in_out ? dy : input.x;
    Gemm(trace_, first, Trans::kYes, second, Trans::kNo, dw.tensor, dw.accumulate, {}, recipe_.tf32);
  } else {
    const LinearQuantizers& q = *recipe_.linear;
    const LinearGradient codes = has_codes ? of_y : NewGradientCodes(which, tokens);
    const QuantizedTensor& dy_rows = codes.rows;
    const QuantizedTensor& dy_columns = codes.columns;
    if (!has_codes) {
      const int64_t draw = (micro_step * spec_.layers + trace_.layer()) * kLinearLayers + static_cast<int64_t>(which);
      Quantize(trace_, dy, &dy_rows, &dy_columns, GradientScale(which),
               {static_cast<uint32_t>(kRoundingStreams + draw)});
    }
    Gemm(trace_, dy_rows, WeightOperand(which, q.w_dgrad, false), dx);
    QuantizedTensor x_columns = input.columns;
    if (!x_columns.codes.defined()) {
      x_columns = NewColumns(which, tokens);
      Quantize(trace_, input.x, nullptr, &x_columns, InputScale(which), {});
    }
    sum_bias();
    const auto dw = parameters_.NextGradient(w.weight);
    const QuantizedTensor& first = shape_.weights_in_out ? x_columns : dy_columns;
    const QuantizedTensor& second = shape_.weights_in_out ? dy_columns : x_columns;
    Gemm(trace_, first, second, dw.tensor, dw.accumulate);
  }
  parameters_.GradientDone(w.weight);
  if (w.bias >= 0) {
    // A key bias adds the same number to every score of a row, and softmax does not see that. Without rotation its
    // gradient is zero. To Adam, which divides by the gradient's size, its rounding errors would be as large as any
    // gradient.
    if (which == LinearLayer::kQkv && !shape_.rotary) {
      Fill(trace_, db.tensor.Cols(spec_.heads * spec_.head_dim, spec_.kv_heads * spec_.head_dim), 0);
    }
    parameters_.GradientDone(w.bias);
  }
  return dx;
}

}  // namespace ridgeline
