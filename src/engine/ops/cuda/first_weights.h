// A GPU's first weights.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "engine/device/normal_numbers.h"
#include "engine/tensor/tensor.h"

namespace ridgeline {

// Queues writing elements first … first + count - 1 of the numbers to device memory, rounded to the dtype, a floating
// one.
void WriteNormalCuda(cudaStream_t stream, DType dtype, std::byte* to, int64_t first, int64_t count,
                     const NormalNumbers& numbers);

}  // namespace ridgeline
