// The ops' CUDA kernels, a file an op family, as ops/cpu/kernels.h has the CPU's.
#pragma once

#include "engine/device/cuda/kernel.h"
#include "engine/device/normal_numbers.h"

namespace ridgeline {

void AddAttentionCuda(CudaKernelTable& table);
void AddElementwiseCuda(CudaKernelTable& table);
void AddEmbeddingCuda(CudaKernelTable& table);
void AddGemmCuda(CudaKernelTable& table);
void AddLossCuda(CudaKernelTable& table);
void AddNormCuda(CudaKernelTable& table);
void AddOptimizerCuda(CudaKernelTable& table);
void AddQuantizeCuda(CudaKernelTable& table);

// A model's first weights, of no op: queues writing elements first … first + count - 1 of the numbers to device memory,
// rounded to the dtype, a floating one.
void WriteNormalCuda(cudaStream_t stream, DType dtype, std::byte* to, int64_t first, int64_t count,
                     const NormalNumbers& numbers);

}  // namespace ridgeline
