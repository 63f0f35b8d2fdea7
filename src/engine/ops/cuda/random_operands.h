// Operands for measuring algorithms under the load of a step: what a device takes for a product depends on its bits.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <cstdint>

namespace ridgeline::engine {

// Writes numbers of magnitude 1 to 2, with random signs and mantissas, into the elements: the first `cols` of each row
// or more. `stride`: elements between rows. For codes of 4 bits, all codes. Throws as CheckCuda.
void WriteRandomOperand(cudaStream_t stream, cudaDataType_t type, void* to, int64_t rows, int64_t cols, int64_t stride);

}  // namespace ridgeline::engine
