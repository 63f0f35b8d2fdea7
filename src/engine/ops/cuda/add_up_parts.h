#pragma once

#include <cstdint>

#include "engine/device/cuda/kernel.h"

namespace ridgeline::engine {

// out (1, cols), of any floating dtype, = the sums over `count` rows of `stride` floats, in a fixed order [+ out if
// `accumulate`]. `next`, if given, is like `out`, for the same number of rows after these. `parts` is device memory.
void AddUpParts(const CudaRun& run, const float* parts, int64_t count, int64_t stride, const Tensor& out,
                bool accumulate, const Tensor& next = {});

}  // namespace ridgeline::engine
