// The collectives' CUDA kernels, and what they are queued by.
#pragma once

#include <memory>

#include "engine/comm/communicator.h"
#include "engine/comm/nccl/nccl.h"
#include "engine/device/cuda/collectives.h"
#include "engine/device/cuda/kernel.h"

namespace ridgeline {

void AddCollectivesCuda(CudaKernelTable& table);

// Connects this thread's current device with those of the communicator's other ranks; a virtual rank's with nobody's.
// Nothing for one rank, whose programs have no collectives. Throws as LoadNccl and ConnectNccl do. Tests have an NCCL
// of their own.
std::unique_ptr<CudaCollectives> MakeCudaCollectives(Communicator& ranks, const Nccl& (*nccl)() = LoadNccl);

}  // namespace ridgeline
