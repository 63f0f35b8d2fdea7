// NVIDIA's GPUs, for the trainer of them: ridgeline-train-cuda.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/nvml.h"
#include "engine/comm/nccl/nccl.h"
#include "engine/device/cuda/libraries.h"
#include "engine/train/device.h"

namespace ridgeline {

// How NVIDIA's libraries are reached. Tests have some of their own.
struct NvidiaLibraries {
  CudaLibraries cuda;
  const Nccl& (*nccl)() = LoadNccl;
  const Nvml& (*nvml)() = LoadNvml;
};

// The GPU of a rank, the thread's device from then on: of those that the process sees the one whose number is the
// rank's place among those on its machine, or the only one. Throws Error(kInfrastructure) where there is none, or
// another one than the spec's `gpu`.
std::unique_ptr<TrainingDevice> OpenCudaDevice(const RunSpec& spec, const DeviceOptions& options, int64_t local_rank,
                                               const NvidiaLibraries& libraries = {});

// The GPUs here, what is wrong with them, and the versions of the driver and of NVIDIA's libraries, or what is missing:
// in lines. Never throws.
std::string DescribeGpus(const NvidiaLibraries& libraries = {});

}  // namespace ridgeline
