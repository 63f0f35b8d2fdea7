// NVIDIA's GPUs, for the trainer that uses them: ridgeline-train-cuda.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/nvml.h"
#include "engine/comm/nccl/nccl.h"
#include "engine/device/cuda/libraries.h"
#include "engine/train/training_device.h"

namespace ridgeline::engine {

// The entry points of NVIDIA's libraries. Tests supply their own.
struct NvidiaLibraries {
  CudaLibraries cuda;
  const Nccl& (*nccl)() = LoadNccl;
  const Nvml& (*nvml)() = LoadNvml;
};

// Opens a rank's GPU, which is the thread's device from then on. If the process sees several, it is the one whose
// number is the rank's place on its machine; else the only one. Throws Error(kInfrastructure) if there is none, or if
// it is not the spec's `gpu`.
std::unique_ptr<TrainingDevice> OpenCudaDevice(const RunSpec& spec, const DeviceOptions& options, int64_t local_rank,
                                               const NvidiaLibraries& libraries = {});

// Describes in lines the GPUs here, their problems, and the versions of the driver and of NVIDIA's libraries, or what
// is missing. Never throws.
std::string DescribeGpus(const NvidiaLibraries& libraries = {});

}  // namespace ridgeline::engine
