// Sums over all elements of a tensor, in an order that depends only on its shape: the parts of record.h, one block
// each.
#pragma once

#include "engine/device/cuda/kernel.h"

namespace ridgeline::engine {

// *to += scale * the sum of `count` values, which are added in double precision.
void AddSumCuda(const CudaRun& run, const float* values, int64_t count, double scale, float* to);

// *to += scale * the sum of x's elements, or of their squares. `parts`: a scratch of ElementParts floats.
void AddElementsCuda(const CudaRun& run, const Tensor& x, const Tensor& parts, bool squared, double scale, float* to);

}  // namespace ridgeline::engine
