#include "engine/model/linear.h"

#include <cassert>
#include <utility>

#include "engine/ops/elementwise.h"
#include "engine/ops/fused_quantize.h"
#include "engine/ops/gemm.h"

namespace ridgeline::engine {
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
    for (const SublayerParameters& sublayer : shape.layers[static_cast<size_t>(layer)]) {
      for (const LinearParameters* linear : {&sublayer.in, &sublayer.out}) {
        QuantizedWeight weight;
        weight.parameter = linear->weight;
        assert(recipe.linear->w_fprop == recipe.linear->w_dgrad);
        weight.quantizer = recipe.linear->w_fprop;
        if (recipe.master == Master::kNone) weight.quantizer.rounding = Rounding::kStochastic;
        weight.delayed = scales.Weight(*linear);
        weight.stream = kWeightStreams + static_cast<uint32_t>(linear->weight);
        weights.push_back(weight);
      }
    }
  }
  return weights;
}

Linears::Linears(Trace& trace, ParameterAccess& parameters, const ModelShape& shape, const RunSpec& spec,
                 const Recipe& recipe, const DelayedScales& scales, TensorGroup& group)
    : trace_(trace),
      parameters_(parameters),
      shape_(shape),
      spec_(spec),
      recipe_(recipe),
      scales_(scales),
      group_(group) {}

// Returns (outputs, inputs) if outputs_first, else (inputs, outputs).
QuantizedTensor Linears::WeightOperand(const LinearParameters& linear, const Quantizer& quantizer, bool outputs_first) {
  const bool as_stored = outputs_first != shape_.weights_in_out;
  if (const QuantizedTensor kept = parameters_.Codes(linear.weight, as_stored); kept.codes.defined()) return kept;
  const QuantizedTensor q = NewQuantized(trace_, quantizer, outputs_first ? linear.outputs : linear.inputs,
                                         outputs_first ? linear.inputs : linear.outputs, Category::kParameters);
  Quantize(trace_, parameters_.Weight(linear.weight), as_stored ? &q : nullptr, as_stored ? nullptr : &q,
           scales_.Weight(linear), {});
  return q;
}

bool Linears::TakesCodes(const LinearParameters& linear) const {
  return !Gathers(linear) && trace_.device().cuda() && Quantizes(spec_, recipe_, trace_.layer()) &&
         recipe_.linear->x_fprop == kFusedQuantizer && recipe_.linear->x_wgrad == kFusedQuantizer;
}

QuantizedTensor Linears::NewRows(const LinearParameters& linear, int64_t tokens) {
  return NewQuantized(trace_, recipe_.linear->x_fprop, tokens, linear.inputs, Category::kActivations);
}

QuantizedTensor Linears::NewColumns(const LinearParameters& linear, int64_t tokens) {
  return NewQuantized(trace_, recipe_.linear->x_wgrad, linear.inputs, tokens, Category::kActivations);
}

bool Linears::TakesGradientCodes(const LinearParameters& linear) const {
  if (!trace_.device().cuda() || !Quantizes(spec_, recipe_, trace_.layer())) return false;
  const LinearQuantizers& q = *recipe_.linear;
  if (q.dy_dgrad != q.dy_wgrad) return false;
  if (shape_.activation == MlpActivation::kGelu) return MakesGradientCodes(q.dy_dgrad);
  return linear.bias < 0 && MakesGateGradientCodes(q.dy_dgrad, linear.outputs / 2);
}

LinearGradient Linears::NewGradientCodes(const LinearParameters& linear, int64_t tokens) {
  const LinearQuantizers& q = *recipe_.linear;
  return {.rows = NewQuantized(trace_, q.dy_dgrad, tokens, linear.outputs, Category::kActivations),
          .columns = NewQuantized(trace_, q.dy_wgrad, linear.outputs, tokens, Category::kActivations)};
}

ParameterAccess::Gradient Linears::BiasGradient(const LinearParameters& linear) {
  return linear.bias < 0 ? ParameterAccess::Gradient{} : parameters_.NextGradient(linear.bias);
}

Tensor Linears::Forward(const LinearParameters& linear, LinearInput& input, bool keep) {
  if (Gathers(linear)) {
    LinearInput all = {.x = group_.Land(group_.Gather(input.x))};
    return Product(linear, all, false);
  }
  if (linear.role == Role::kColumnParallel) return Product(linear, input, keep);
  return group_.Land(group_.Sum(Product(linear, input, keep)));
}

Tensor Linears::Product(const LinearParameters& linear, LinearInput& input, bool keep) {
  const Tensor x = input.x;
  const bool has_codes = input.rows.codes.defined();
  const int64_t tokens = has_codes ? input.rows.outer : x.rows;
  const Tensor y = New(tokens, linear.outputs);
  // The bias of a sum is a term of the first rank's.
  const bool adds_bias = linear.bias >= 0 && (linear.role == Role::kColumnParallel || group_.place() == 0);
  const Tensor bias = adds_bias ? parameters_.Weight(linear.bias) : Tensor{};
  if (!Quantizes(spec_, recipe_, trace_.layer())) {
    const Trans trans = shape_.weights_in_out ? Trans::kNo : Trans::kYes;
    Gemm(trace_, x, Trans::kNo, parameters_.Weight(linear.weight), trans, y, false, bias, recipe_.tf32);
    return y;
  }
  const QuantizedTensor rows = has_codes ? input.rows : NewRows(linear, tokens);
  if (!has_codes) {
    if (keep) input = {.columns = NewColumns(linear, tokens)};
    Quantize(trace_, x, &rows, keep ? &input.columns : nullptr, InputScale(linear), {});
  }
  Gemm(trace_, rows, WeightOperand(linear, recipe_.linear->w_fprop, true), y, false, bias, true);
  return y;
}

Tensor Linears::Backward(const LinearParameters& linear, int64_t micro_step, const LinearGradient& of_y,
                         const LinearInput& input) {
  const bool sums = linear.role == Role::kColumnParallel;
  const bool has_codes = of_y.rows.codes.defined();
  const Tensor dy = sums ? of_y.dy : group_.Land(group_.Gather(of_y.dy));
  const int64_t tokens = has_codes ? of_y.rows.outer : dy.rows;
  // The input arrives during the first product. The sum of the terms of dx flies during the second.
  const TensorGroup::Arriving again =
      Gathers(linear) ? group_.Gather(input.x) : TensorGroup::Arriving{.tensor = input.x};
  const Tensor terms = New(tokens, linear.inputs);
  TensorGroup::Arriving dx{.tensor = terms};
  const auto end_first_product = [&] {
    if (sums) dx = group_.Sum(terms);
    return group_.Land(again);
  };
  ParameterAccess::Gradient db;
  // Runs just before the weight's gradient, which reads the same numbers, so that a library may compute both at once.
  const auto sum_bias = [&] {
    if (linear.bias < 0 || has_codes) return;
    db = BiasGradient(linear);
    ColumnSum(trace_, dy, db.tensor, db.accumulate);
  };
  if (!Quantizes(spec_, recipe_, trace_.layer())) {
    const Trans trans = shape_.weights_in_out ? Trans::kYes : Trans::kNo;
    Gemm(trace_, dy, Trans::kNo, parameters_.Weight(linear.weight), trans, terms, false, {}, recipe_.tf32);
    const Tensor x = end_first_product();
    sum_bias();
    const auto dw = parameters_.NextGradient(linear.weight);
    const Tensor& first = shape_.weights_in_out ? x : dy;
    const Tensor& second = shape_.weights_in_out ? dy : x;
    Gemm(trace_, first, Trans::kYes, second, Trans::kNo, dw.tensor, dw.accumulate, {}, recipe_.tf32);
  } else {
    const LinearQuantizers& q = *recipe_.linear;
    const LinearGradient codes = has_codes ? of_y : NewGradientCodes(linear, tokens);
    const QuantizedTensor& dy_rows = codes.rows;
    const QuantizedTensor& dy_columns = codes.columns;
    if (!has_codes) {
      const int64_t draw = micro_step * shape_.linears + linear.number;
      Quantize(trace_, dy, &dy_rows, &dy_columns, GradientScale(linear),
               {static_cast<uint32_t>(kRoundingStreams + draw)});
    }
    Gemm(trace_, dy_rows, WeightOperand(linear, q.w_dgrad, false), terms);
    const Tensor x = end_first_product();
    QuantizedTensor x_columns = input.columns;
    if (!x_columns.codes.defined()) {
      x_columns = NewColumns(linear, tokens);
      Quantize(trace_, x, nullptr, &x_columns, InputScale(linear), {});
    }
    sum_bias();
    const auto dw = parameters_.NextGradient(linear.weight);
    const QuantizedTensor& first = shape_.weights_in_out ? x_columns : dy_columns;
    const QuantizedTensor& second = shape_.weights_in_out ? dy_columns : x_columns;
    Gemm(trace_, first, second, dw.tensor, dw.accumulate);
  }
  parameters_.GradientDone(linear.weight);
  if (linear.bias >= 0) {
    const auto& [first, count] = linear.idle_bias;
    if (count > 0) Fill(trace_, db.tensor.Cols(first, count), 0);
    parameters_.GradientDone(linear.bias);
  }
  return group_.Land(dx);
}

}  // namespace ridgeline::engine
