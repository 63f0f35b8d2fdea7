// The linear layers of a transformer block: products in the compute dtype, or with quantized operands, and what the
// ranks of a tensor-parallel group exchange before and after them (model/tensor_group.h).
#pragma once

#include <vector>

#include "engine/device/trace.h"
#include "engine/model/delayed_scales.h"
#include "engine/model/parameter.h"
#include "engine/model/parameter_access.h"
#include "engine/model/tensor_group.h"
#include "engine/ops/quantize.h"
#include "engine/precision/recipe.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

// A linear layer's input: as numbers, or quantized for the product if the op that makes it writes its codes. If a group
// splits tokens, that of a layer split by outputs is of the rank's own tokens. It is gathered for use, forward and
// backward, so that only the rank's own part is kept (Korthikanti et al., 2022, section 4.2.2).
struct LinearInput {
  Tensor x = {};                 // (tokens, inputs)
  QuantizedTensor rows = {};     // (tokens, inputs): read by Forward
  QuantizedTensor columns = {};  // (inputs, tokens): x in the form for the weight gradient, and smaller
  // Whether the weight gradient has its operand.
  bool defined() const { return x.defined() || columns.codes.defined(); }
};

// The gradient of a linear layer's output: as numbers, or quantized for both products if the op that makes it writes
// its codes. Such an op also sums the gradient of the bias.
struct LinearGradient {
  Tensor dy = {};                // (tokens, outputs)
  QuantizedTensor rows = {};     // (tokens, outputs)
  QuantizedTensor columns = {};  // (outputs, tokens)
};

// A weight that is kept only as its codes and scales, (rows, cols) as stored.
struct QuantizedWeight {
  int parameter = -1;
  Quantizer quantizer;   // rounds stochastically if no master weight keeps what rounding to nearest would lose
  DelayedScale delayed;  // its slot
  uint32_t stream = 0;   // of its rounding
};
// Returns all quantized weights of a model; none unless the spec's primary_weights are quantized.
std::vector<QuantizedWeight> QuantizedWeights(const ModelShape& shape, const RunSpec& spec, const Recipe& recipe,
                                              const DelayedScales& scales);

class Linears {
 public:
  // References must outlive it. Calls use the trace's current layer.
  Linears(Trace& trace, ParameterAccess& parameters, const ModelShape& shape, const RunSpec& spec, const Recipe& recipe,
          const DelayedScales& scales, TensorGroup& group);

  // Whether the op that makes the input of `linear`, of the trace's layer, should write its codes
  // (ops/fused_quantize.h): the device must have kernels for it, and the scales must be known before. Inputs that are
  // gathered are gathered as numbers.
  bool TakesCodes(const LinearParameters& linear) const;
  // The storages of a layer's rows and columns, and its scale.
  QuantizedTensor NewRows(const LinearParameters& linear, int64_t tokens);
  QuantizedTensor NewColumns(const LinearParameters& linear, int64_t tokens);
  DelayedScale InputScale(const LinearParameters& linear) const { return scales_.Input(linear); }

  // Likewise of the gradient of the output of an MLP's first layer, that is, of the activation's input.
  bool TakesGradientCodes(const LinearParameters& linear) const;
  LinearGradient NewGradientCodes(const LinearParameters& linear, int64_t tokens);
  // Where the gradient of the layer's bias goes, once for each micro-step. Undefined without a bias.
  ParameterAccess::Gradient BiasGradient(const LinearParameters& linear);
  DelayedScale GradientScale(const LinearParameters& linear) const { return scales_.Gradient(linear); }

  // y (tokens, outputs) = x Wᵀ + b; of the rank's own tokens if the layer is split by inputs. If the layer is quantized
  // and `keep` is set, the same pass over x also makes the columns that the backward pass reads. They replace x in
  // `input`.
  Tensor Forward(const LinearParameters& linear, LinearInput& input, bool keep);

  // Records the gradients of the weight and of the bias, and returns dx, (tokens, inputs). dy and dx have the tokens of
  // y and x.
  Tensor Backward(const LinearParameters& linear, int64_t micro_step, const LinearGradient& of_y,
                  const LinearInput& input);

 private:
  // Whether x is gathered before the product.
  bool Gathers(const LinearParameters& linear) const {
    return group_.splits_tokens() && linear.role == Role::kColumnParallel;
  }
  // Forward without exchanges. y may be a term of a sum.
  Tensor Product(const LinearParameters& linear, LinearInput& input, bool keep);
  QuantizedTensor WeightOperand(const LinearParameters& linear, const Quantizer& quantizer, bool outputs_first);
  Tensor New(int64_t rows, int64_t cols) {
    return trace_.Temporary(recipe_.compute, rows, cols, Category::kActivations);
  }

  Trace& trace_;
  ParameterAccess& parameters_;
  const ModelShape& shape_;
  const RunSpec& spec_;
  const Recipe& recipe_;
  const DelayedScales& scales_;
  TensorGroup& group_;
};

}  // namespace ridgeline::engine
