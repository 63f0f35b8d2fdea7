// The collectives' CUDA kernels, and the object that queues them.
#pragma once

#include <memory>

#include "engine/comm/communicator.h"
#include "engine/comm/nccl/nccl.h"
#include "engine/device/cuda/collectives.h"
#include "engine/device/cuda/kernel.h"

namespace ridgeline::engine {

void AddCollectivesCuda(CudaKernelTable& table);

// Connects this thread's current device with those of the communicator's other ranks. A virtual rank's device is
// connected with none. Returns nothing for a single rank, whose programs have no collectives. Throws what LoadNccl and
// ConnectNccl throw. Tests supply their own NCCL.
std::unique_ptr<CudaCollectives> MakeCudaCollectives(Communicator& ranks, const Nccl& (*nccl)() = LoadNccl);

}  // namespace ridgeline::engine
