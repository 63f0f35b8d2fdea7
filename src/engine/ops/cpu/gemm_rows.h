// Converts and finishes rows of numbers, vectorised.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

// out[i] = in[i], fp32, bf16 or fp16 to fp32.
void WidenRow(const void* in, DType dtype, float* out, int64_t n);
// out[i] = in[i], which is fp32, rounded to TF32 (precision/tf32.h).
void RoundRowToTf32(const void* in, DType dtype, float* out, int64_t n);
// c[i] = scale * in[i] [+ bias[i]] [+ c[i] if `accumulate`], rounded to c's dtype. bias may be nullptr.
void FinishRow(const float* in, float scale, const float* bias, void* c, DType dtype, bool accumulate, int64_t n);

}  // namespace ridgeline::engine
