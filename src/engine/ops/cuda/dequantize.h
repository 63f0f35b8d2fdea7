// Codes as numbers again, for the op of that name and for products of codes that the device does not multiply.
#pragma once

#include "engine/device/cuda/kernel.h"
#include "engine/precision/quantizer.h"

namespace ridgeline {

// y (outer, padded inner or less of it), fp32 or bf16, = (code * block scale) * tensor scale; without the latter where
// it is undefined: exact in bf16 then, unless the result is subnormal there.
void DequantizeTo(const CudaRun& run, const Quantizer& quantizer, const StoredCodes& q, const Tensor& y);

}  // namespace ridgeline
