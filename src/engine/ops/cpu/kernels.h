// The ops' CPU kernels, one file per op family, and their memory outside the slab.
#pragma once

#include <cstdint>

#include "engine/device/cpu/kernel.h"

namespace ridgeline::engine {

void AddAttentionCpu(CpuKernelTable& table);
void AddElementwiseCpu(CpuKernelTable& table);
void AddEmbeddingCpu(CpuKernelTable& table);
void AddGemmCpu(CpuKernelTable& table);
void AddLossCpu(CpuKernelTable& table);
void AddNormCpu(CpuKernelTable& table);
void AddOptimizerCpu(CpuKernelTable& table);
void AddQuantizeCpu(CpuKernelTable& table);

// Bytes outside the slab for all prepared products of this process together: at most 12 MiB and 0.25 MiB a thread.
int64_t GemmScratchBytes();
// The same for all of attention: blocks for each thread, whose size depends on head_dim alone (about 2 MiB a thread for
// head_dim 128).
int64_t AttentionScratchBytes();

}  // namespace ridgeline::engine
