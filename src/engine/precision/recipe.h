// What a precision means: the dtype of each role. Data; adding a precision is adding a row.
#pragma once

#include <string_view>

#include "engine/tensor/tensor.h"

namespace ridgeline {

struct Recipe {
  std::string_view precision;        // as in a RunSpec
  std::string_view state_precision;  // as in a RunSpec
  DType compute = DType::kF32;       // weights as multiplied, and activations
  bool split_master = false;         // an fp32 master weight kept as compute weight + int16 (ops/optimizer.h)
  DType moments = DType::kF32;       // Adam's m and v
  DType gradients = DType::kF32;     // of parameters

  // Bytes a parameter of persistent state: weights and moments.
  int64_t state_bytes() const { return SizeOf(compute) + (split_master ? 2 : 0) + 2 * SizeOf(moments); }
};

// Throws Error(kInvalidInput) naming the combination where there is no such recipe.
const Recipe& RecipeOf(std::string_view precision, std::string_view state_precision);

}  // namespace ridgeline
