// What cuBLASLt can do beside a product: GELU's gradient of its result, or the sums over an operand's rows.
#pragma once

#include "engine/device/cuda/epilogue.h"

namespace ridgeline::engine {

// For CudaOptions.
CudaEpilogue GemmEpilogue(const OpCall& call, const OpCall& other, const CudaRun& run);

}  // namespace ridgeline::engine
