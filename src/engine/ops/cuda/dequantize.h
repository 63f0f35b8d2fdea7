// Converts codes back to numbers, for the op of that name and for products of codes that the device cannot multiply.
#pragma once

#include "engine/device/cuda/kernel.h"
#include "engine/precision/quantizer.h"

namespace ridgeline::engine {

// y (outer, padded inner or less), fp32 or bf16, = (code * block scale) * tensor scale, without the latter if it is
// undefined. Then it is exact in bf16, unless the result is subnormal there.
void DequantizeTo(const CudaRun& run, const Quantizer& quantizer, const StoredCodes& q, const Tensor& y);

}  // namespace ridgeline::engine
