// Attention by cuDNN: bf16 and fp16, on tensor cores. attention.cu computes what it refuses.
#pragma once

#include <memory>

#include "engine/device/cuda/kernel.h"

namespace ridgeline::engine {

// Null if cuDNN is not used: there is no cuDNN, or the call was recorded without a workspace for it. Equal calls share
// a state.
std::shared_ptr<KernelState> PrepareAttentionForwardCudnn(const OpCall& call, const CudaRun& run);
std::shared_ptr<KernelState> PrepareAttentionBackwardCudnn(const OpCall& call, const CudaRun& run);
// Returns whether cuDNN computes the call, as its state says; if so, queues it.
bool AttentionForwardCudnn(const OpCall& call, const CudaRun& run, KernelState* state);
bool AttentionBackwardCudnn(const OpCall& call, const CudaRun& run, KernelState* state);

}  // namespace ridgeline::engine
