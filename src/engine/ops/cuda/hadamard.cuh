// nvfp4's random Hadamard transform (precision/quantizer.h) of a unit's columns, 16 rows at a time.
#pragma once

#include "engine/ops/cuda/codes.cuh"

namespace ridgeline::engine {

// In the order of precision/reference.h. Four lanes have a group's rows, so values at distances of 4 or 8 are in
// different lanes.
__device__ inline void Transform(float (&x)[kThreadRows][kThreadCols]) {
  constexpr uint32_t kNegative = [] {
    uint32_t negative = 0;
    for (int i = 0; i < kHadamardSize; ++i) negative |= (kHadamardSigns[i] < 0 ? 1U : 0U) << i;
    return negative;
  }();
  const int quad = NumberOfLane<kQuads, kChunks>();
  for (int c = 0; c < kThreadCols; ++c) {
    float y[kThreadRows];
    for (int r = 0; r < kThreadRows; ++r) {
      const bool negative = (kNegative >> (quad % 4 * kThreadRows + r) & 1) != 0;
      y[r] = __fmul_rn(x[r][c], negative ? -0.25F : 0.25F);
    }
    const float sum01 = __fadd_rn(y[0], y[1]);
    const float sum23 = __fadd_rn(y[2], y[3]);
    const float difference01 = __fsub_rn(y[0], y[1]);
    const float difference23 = __fsub_rn(y[2], y[3]);
    y[0] = __fadd_rn(sum01, sum23);
    y[1] = __fadd_rn(difference01, difference23);
    y[2] = __fsub_rn(sum01, sum23);
    y[3] = __fsub_rn(difference01, difference23);
    for (int apart = 1; apart < 4; apart *= 2) {
      for (float& value : y) {
        const float other = __shfl_xor_sync(kAllLanes, value, apart * kChunks);
        value = (quad & apart) == 0 ? __fadd_rn(value, other) : __fsub_rn(other, value);
      }
    }
    for (int r = 0; r < kThreadRows; ++r) x[r][c] = y[r];
  }
}

}  // namespace ridgeline::engine
