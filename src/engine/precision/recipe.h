// A precision as data: the dtype of each role, and how the operands of linear layers are quantized. A precision made of
// existing dtypes and formats is one row; CONTRIBUTING.md says what else a new format needs.
#pragma once

#include <string_view>

#include "engine/precision/quantizer.h"
#include "engine/tensor/tensor.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

// How a linear layer's operands are quantized for each of its products, each from the original:
// fprop y = x wᵀ, dgrad dx = dy w, wgrad dw = dyᵀ x.
struct LinearQuantizers {
  Quantizer x_fprop, w_fprop;
  Quantizer dy_dgrad, w_dgrad;
  Quantizer dy_wgrad, x_wgrad;
};

// How an fp32 master weight is kept besides the weight that is multiplied (ops/optimizer.h).
enum class Master : uint8_t {
  kNone,       // none; the updates change the multiplied weights
  kRemainder,  // int16: the remainder beyond bf16
  kWhole,      // fp32
};

struct Recipe {
  Precision precision = Precision::kFp32;
  std::string_view scaling;          // as in RunSpec
  std::string_view state_precision;  // as in RunSpec
  DType compute = DType::kF32;       // weights and activations outside of quantized products
  Master master = Master::kNone;
  DType moments = DType::kF32;               // Adam's m and v
  DType gradients = DType::kF32;             // of parameters
  const LinearQuantizers* linear = nullptr;  // nullptr: linear layers multiply `compute`
  bool tf32 = false;                         // linear layers and the head round it to TF32 as they multiply

  // Whether gradients carry a factor that keeps small ones from vanishing.
  bool loss_scaled() const { return compute == DType::kF16; }
  bool delayed() const { return linear != nullptr && linear->x_fprop.scaling == Scaling::kDelayed; }
};

// Throws Error(kInvalidInput), naming the combination, if there is no such recipe.
const Recipe& RecipeOf(Precision precision, std::string_view scaling, std::string_view state_precision);

}  // namespace ridgeline::engine
