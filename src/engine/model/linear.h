// The linear layers of a transformer block: products in the compute dtype, or of quantized operands.
#pragma once

#include <vector>

#include "engine/device/trace.h"
#include "engine/model/parameter.h"
#include "engine/model/parameter_access.h"
#include "engine/ops/quantize.h"
#include "engine/precision/recipe.h"
#include "ridgeline/run.h"

namespace ridgeline {

// What a linear layer's weight gradient reads: the layer's input, or what became of it when it was quantized for that
// product, which is smaller.
struct LinearInput {
  Tensor x;                 // (tokens, inputs)
  QuantizedTensor columns;  // (inputs, tokens)
  bool defined() const { return x.defined() || columns.codes.defined(); }
};

// The state of delayed scaling: a row for each tensor that is quantized with it. Persistent, fp32.
struct DelayedScaling {
  Format format = Format::kE4M3;
  Tensor history;  // (tensors, history length)
  Tensor scale;    // (tensors, 1); 1 in the beginning
  Tensor amax;     // (tensors, 1)
};

enum class LinearLayer : uint8_t { kQkv, kOut, kUp, kDown };
inline constexpr int64_t kLinearLayers = 4;  // of a block

class Linears {
 public:
  // References must outlive it. Calls are made with the trace's layer set to theirs.
  Linears(Trace& trace, ParameterAccess& parameters, const ModelShape& shape, const RunSpec& spec,
          const Recipe& recipe);

  // y (tokens, outputs) = x Wᵀ + b. Where the layer is quantized and its input is to be kept, the columns the backward
  // pass reads are made in the same pass over x, and take its place in `input`.
  Tensor Forward(LinearLayer which, LinearInput& input, bool keep);

  // Records the weight's and the bias's gradients and returns dx (tokens, inputs).
  Tensor Backward(LinearLayer which, int64_t micro_step, Tensor dy, const LinearInput& input);

  // After a micro-step's backward pass: what delayed scaling has seen becomes its history. (The forward pass's could
  // join after the forward pass; nothing reads it before the next one, and recomputation reads the old one.)
  void EndMicroStep();

  const std::vector<DelayedScaling>& delayed_scaling() const { return delayed_; }

 private:
  struct Weights {
    int weight, bias;
    int64_t inputs, outputs;
  };
  Weights WeightsOf(LinearLayer which) const;
  bool Quantized() const;
  QuantizedTensor QuantizedWeight(LinearLayer which, const Quantizer& quantizer, bool outputs_first);
  DelayedScale DelayedOf(bool of_gradient, LinearLayer which, int64_t operand) const;
  Tensor New(int64_t rows, int64_t cols) {
    return trace_.Temporary(recipe_.compute, rows, cols, Category::kActivations);
  }

  Trace& trace_;
  ParameterAccess& parameters_;
  const ModelShape& shape_;
  const RunSpec& spec_;
  const Recipe& recipe_;
  std::vector<DelayedScaling> delayed_;  // of inputs and weights; of gradients. Empty without delayed scaling
};

}  // namespace ridgeline
