// Kernels that collectives need beside NCCL's own. Each is queued on `stream`.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

// *count += 1. `count` is pinned memory of the host, which may read it at any time. Only one stream may write it.
void CountCuda(uint64_t* count, cudaStream_t stream);

// to = mean + (accumulate ? to : 0): `elements` of a floating dtype, rounded to nearest.
void TakeMeanCuda(const float* mean, DType dtype, void* to, int64_t elements, bool accumulate, cudaStream_t stream);

// Replaces each of `count` values of a floating dtype with the sum of `equals` copies of it, added one after another
// and rounded each time.
void SumOfEqualsCuda(void* values, DType dtype, int64_t count, int64_t equals, cudaStream_t stream);

}  // namespace ridgeline::engine
