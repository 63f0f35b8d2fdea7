// The linear layers of a transformer block: products in the compute dtype, or of quantized operands.
#pragma once

#include <vector>

#include "engine/device/trace.h"
#include "engine/model/delayed_scales.h"
#include "engine/model/parameter.h"
#include "engine/model/parameter_access.h"
#include "engine/ops/quantize.h"
#include "engine/precision/recipe.h"
#include "ridgeline/run.h"

namespace ridgeline {

// A linear layer's input: as numbers, or where what makes it writes its codes, quantized for the product.
struct LinearInput {
  Tensor x = {};                 // (tokens, inputs)
  QuantizedTensor rows = {};     // (tokens, inputs): what Forward reads
  QuantizedTensor columns = {};  // (inputs, tokens): what became of x for the weight gradient, and is smaller
  // Whether the weight gradient has what it reads.
  bool defined() const { return x.defined() || columns.codes.defined(); }
};

// A weight that is kept as its codes and scales and as nothing else, (rows, cols) as it lies.
struct QuantizedWeight {
  int parameter = -1;
  Quantizer quantizer;   // rounds stochastically where no master weight keeps what rounding to nearest would lose
  DelayedScale delayed;  // its slot
  uint32_t stream = 0;   // of its rounding
};
// All of a model; none unless the spec's primary_weights are quantized.
std::vector<QuantizedWeight> QuantizedWeights(const ModelShape& shape, const RunSpec& spec, const Recipe& recipe,
                                              const DelayedScales& scales);

class Linears {
 public:
  // References must outlive it. Calls are made with the trace's layer set to theirs.
  Linears(Trace& trace, ParameterAccess& parameters, const ModelShape& shape, const RunSpec& spec, const Recipe& recipe,
          const DelayedScales& scales);

  // Whether what makes the input of the trace's layer is to write its codes (ops/fused_quantize.h): where the device
  // has kernels for it and scales are known before.
  bool TakesCodes() const;
  // The storages of a layer's rows and columns, and its scale.
  QuantizedTensor NewRows(LinearLayer which, int64_t tokens);
  QuantizedTensor NewColumns(LinearLayer which, int64_t tokens);
  DelayedScale InputScale(LinearLayer which) const { return scales_.Input(trace_.layer(), which); }

  // y (tokens, outputs) = x Wᵀ + b. Where the layer is quantized and its input is to be kept, the columns the backward
  // pass reads are made in the same pass over x, and take its place in `input`.
  Tensor Forward(LinearLayer which, LinearInput& input, bool keep);

  // Records the weight's and the bias's gradients and returns dx (tokens, inputs).
  Tensor Backward(LinearLayer which, int64_t micro_step, Tensor dy, const LinearInput& input);

 private:
  struct Weights {
    int weight, bias;
    int64_t inputs, outputs;
  };
  Weights WeightsOf(LinearLayer which) const;
  QuantizedTensor WeightOperand(LinearLayer which, const Quantizer& quantizer, bool outputs_first);
  Tensor New(int64_t rows, int64_t cols) {
    return trace_.Temporary(recipe_.compute, rows, cols, Category::kActivations);
  }

  Trace& trace_;
  ParameterAccess& parameters_;
  const ModelShape& shape_;
  const RunSpec& spec_;
  const Recipe& recipe_;
  const DelayedScales& scales_;
};

}  // namespace ridgeline
