// NVIDIA's GPUs, for the trainer of them: ridgeline-train-cuda.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/comm/nccl/nccl.h"
#include "engine/device/cuda/libraries.h"
#include "engine/train/device.h"

namespace ridgeline {

// The GPU of a rank, the thread's device from then on: of those that the process sees the one whose number is the
// rank's place among those on its machine, or the only one. Throws Error(kInfrastructure) where there is none, or
// another one than the spec's `gpu`. Tests have libraries of their own.
std::unique_ptr<TrainingDevice> OpenCudaDevice(const RunSpec& spec, const DeviceOptions& options, int64_t local_rank,
                                               const CudaLibraries& libraries = {}, const Nccl& (*nccl)() = LoadNccl);

// The GPUs here, and the versions of the driver and of NVIDIA's libraries, or what is missing: in lines. Never throws.
std::string DescribeGpus(const CudaLibraries& libraries = {}, const Nccl& (*nccl)() = LoadNccl);

}  // namespace ridgeline
