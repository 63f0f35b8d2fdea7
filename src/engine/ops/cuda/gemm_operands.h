// What stands around cuBLASLt's products: scales as tensor cores read them, and what it cannot add.
#pragma once

#include "engine/device/cuda/kernel.h"

namespace ridgeline {

// scales (rows, blocks) into tiles, which are (rows, blocks) rounded up to whole tiles, as tensor cores read them; 0
// beyond the edges. Tiles of 128 rows and 4 columns lie row of tiles after row of tiles, 512 bytes each (cuBLAS
// documentation, "1D Block Scaling Factors Layout").
void TileScales(const CudaRun& run, const Tensor& scales, const Tensor& tiles);

// factors = {a's tensor scale * b's, beta}; an undefined scale is 1.
void ProductFactors(const CudaRun& run, const Tensor& a_scale, const Tensor& b_scale, float beta,
                    const Tensor& factors);

// c = sums [+ bias, broadcast over rows] [+ c where `accumulate`]. bias may be undefined.
void FinishProduct(const CudaRun& run, const Tensor& sums, const Tensor& bias, bool accumulate, const Tensor& c);

}  // namespace ridgeline
