// Activations of one element, for kernels that store them and kernels that quantize them.
#pragma once

#include <cuda_runtime.h>

namespace ridgeline::engine {

// e^-x, limited to 2^125.6. 1 / (1 + it) is the logistic function, and every quotient by it is in the range in which
// __fdividef is exact. For NaN it may be anything.
__device__ inline float ExpOfMinus(float x) { return expf(fminf(-x, 87.0F)); }

// 2 sqrt(2 / pi) (x + 0.044715 x^3): gelu(x) = x * sigmoid of this, since 1 + tanh(u) = 2 sigmoid(2 u).
constexpr float kGeluLinear = 1.5957691216057308F;
constexpr float kGeluCubic = 0.07135481282553514F;
__device__ inline float GeluOf(float x) {
  const float u = x * fmaf(x * x, kGeluCubic, kGeluLinear);
  return __fdividef(x, 1.0F + ExpOfMinus(u));
}

// d: the gradient of GeluOf(x).
__device__ inline float GeluGradient(float d, float x) {
  const float squared = x * x;
  const float u = x * fmaf(squared, kGeluCubic, kGeluLinear);
  const float slope_of_u = fmaf(squared, 3 * kGeluCubic, kGeluLinear);
  const float e = ExpOfMinus(u);
  const float s = __fdividef(1.0F, 1.0F + e);
  return d * fmaf(x * s * (e * s), slope_of_u, s);  // 1 - s = e s
}

__device__ inline float SwiGluOf(float gate, float up) { return __fdividef(gate, 1.0F + ExpOfMinus(gate)) * up; }
// d: the gradient of SwiGluOf(gate, up).
__device__ inline void SwiGluGradient(float d, float gate, float up, float& d_gate, float& d_up) {
  const float e = ExpOfMinus(gate);
  const float s = __fdividef(1.0F, 1.0F + e);
  const float silu = gate * s;
  d_gate = d * up * fmaf(silu, e * s, s);  // 1 - s = e s
  d_up = d * silu;
}

}  // namespace ridgeline::engine
