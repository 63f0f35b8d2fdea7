// What collectives need of a device beside NCCL's own kernels. Each is queued on `stream`.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace ridgeline {

// *count += 1. `count` is pinned memory of the host's, which may read it at any time; one stream may write it.
void CountCuda(uint64_t* count, cudaStream_t stream);

// to = mean + (accumulate ? to : 0): `elements` of a floating dtype, rounded to nearest.
void TakeMeanCuda(const float* mean, DType dtype, void* to, int64_t elements, bool accumulate, cudaStream_t stream);

// Each of `count` values = the sum of so many of it, added one after another.
void SumOfEqualsCuda(float* values, int64_t count, int64_t equals, cudaStream_t stream);

}  // namespace ridgeline
