// The ops' CUDA kernels, a file an op family, as ops/cpu/kernels.h has the CPU's.
#pragma once

#include "engine/device/cuda/kernel.h"

namespace ridgeline {

void AddAttentionCuda(CudaKernelTable& table);
void AddElementwiseCuda(CudaKernelTable& table);
void AddEmbeddingCuda(CudaKernelTable& table);
void AddGemmCuda(CudaKernelTable& table);
void AddLossCuda(CudaKernelTable& table);
void AddNormCuda(CudaKernelTable& table);
void AddOptimizerCuda(CudaKernelTable& table);
void AddQuantizeCuda(CudaKernelTable& table);

}  // namespace ridgeline
