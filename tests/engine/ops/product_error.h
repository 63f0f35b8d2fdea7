// How far a product may differ from the same product in double precision.
#pragma once

#include <algorithm>
#include <cmath>

#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

// The errors of a GPU's product. NVIDIA does not say which way its library rounds to TF32, nor that it does, so either
// operand may be off by a step. The library may store a product in c's type before it adds c or a bias. Tensor cores
// keep fewer bits of the sums of codes than fp32 has. (An H200 does the second and the third.)
#if defined(RIDGELINE_CUDA_TESTS) && !defined(RIDGELINE_CUDA_ON_CPU)
constexpr double kTf32Error = 2e-3;
constexpr double kRoundedBetween = 1;
constexpr double kCodesSumError = 1e-3;
#else
constexpr double kTf32Error = 0;
constexpr double kRoundedBetween = 0;
constexpr double kCodesSumError = 2e-6;
#endif

// The error of so many roundings of the result to `out`, and of the roundings of its parts on the way.
inline double RoundingError(DType out, double roundings, double product, double c, double bias) {
  if (out == DType::kF32) return 0;
  const double between = std::abs(product) + std::max(std::abs(product + c), std::abs(product + bias));
  return (std::abs(product + c + bias) * roundings + kRoundedBetween * between) / 256;
}

}  // namespace ridgeline::engine
