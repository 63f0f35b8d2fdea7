// The ops' CUDA kernels, one file per op family, as in ops/cpu/kernels.h for the CPU.
#pragma once

#include "engine/device/cuda/kernel.h"
#include "engine/device/normal_numbers.h"

namespace ridgeline::engine {

void AddAttentionCuda(CudaKernelTable& table);
void AddElementwiseCuda(CudaKernelTable& table);
void AddEmbeddingCuda(CudaKernelTable& table);
void AddGemmCuda(CudaKernelTable& table);
void AddLossCuda(CudaKernelTable& table);
void AddNormCuda(CudaKernelTable& table);
void AddOptimizerCuda(CudaKernelTable& table);
void AddQuantizeCuda(CudaKernelTable& table);

// A model's first weights, which belong to no op: queues writing elements first … first + count - 1 of the numbers to
// device memory, rounded to the dtype, which is a floating one.
void WriteNormalCuda(cudaStream_t stream, DType dtype, std::byte* to, int64_t first, int64_t count,
                     const NormalNumbers& numbers);

// Reads bytes of device memory and drops them. Afterwards the device's caches hold these.
void ReadThroughCuda(cudaStream_t stream, const std::byte* from, int64_t bytes);

}  // namespace ridgeline::engine
