// Attention by cuDNN: bf16 and fp16, on tensor cores. What it refuses, attention.cu computes.
#pragma once

#include <memory>

#include "engine/device/cuda/kernel.h"

namespace ridgeline {

// Null where cuDNN is not asked: libraries without it, or a call that was recorded without a workspace for it.
// Equal calls share a state.
std::shared_ptr<KernelState> PrepareAttentionForwardCudnn(const OpCall& call, const CudaRun& run);
std::shared_ptr<KernelState> PrepareAttentionBackwardCudnn(const OpCall& call, const CudaRun& run);
// Whether cuDNN computes the call, as its state says; it is queued then.
bool AttentionForwardCudnn(const OpCall& call, const CudaRun& run, KernelState* state);
bool AttentionBackwardCudnn(const OpCall& call, const CudaRun& run, KernelState* state);

}  // namespace ridgeline
