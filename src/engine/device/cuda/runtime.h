// Owners of what the CUDA runtime gives out, and the one way its errors are read.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace ridgeline {

// Throws Error in words unless `error` is cudaSuccess; `what` names the call.
void CheckCuda(cudaError_t error, const char* what);

}  // namespace ridgeline
