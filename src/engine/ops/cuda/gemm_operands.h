// The work around cuBLASLt's products: arranges scales for tensor cores, and adds what cuBLASLt cannot.
#pragma once

#include "engine/device/cuda/kernel.h"

namespace ridgeline::engine {

// Copies scales (rows, blocks) into tiles, which are (rows, blocks) rounded up to whole tiles, in the layout for tensor
// cores; 0 beyond the edges. Tiles of 128 rows and 4 columns have 512 bytes each, and are stored row by row of tiles
// (cuBLAS documentation, "1D Block Scaling Factors Layout").
void TileScales(const CudaRun& run, const Tensor& scales, const Tensor& tiles);

// factors = {a's tensor scale * b's, beta}; an undefined scale is 1.
void ProductFactors(const CudaRun& run, const Tensor& a_scale, const Tensor& b_scale, float beta,
                    const Tensor& factors);

// c = sums [+ bias, broadcast over rows] [+ c if `accumulate`]. bias may be undefined.
void FinishProduct(const CudaRun& run, const Tensor& sums, const Tensor& bias, bool accumulate, const Tensor& c);

}  // namespace ridgeline::engine
