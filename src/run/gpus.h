// NVIDIA's GPUs by the names that a spec's `gpu` takes: what decides how a step is planned for one that is not there,
// and how one that is there is known to be the one that was asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ridgeline {

struct Gpu {
  std::string_view name;         // a spec's
  std::string_view product;      // as people call it: "H100"
  std::string_view driver_name;  // what the driver calls it, exactly: "NVIDIA H100 80GB HBM3"
  int compute_capability;        // 10 x major + minor
  int multiprocessors;
  int64_t total_bytes;   // as nvidia-smi says it
  int64_t usable_bytes;  // what CUDA shows a program of that: the driver and the ECC keep the rest
};

// Each is of an architecture that kernels are compiled for.
std::span<const Gpu> Gpus();

// nullptr where there is none of this name.
const Gpu* FindGpu(std::string_view name);

// Whether `text`, as a cluster calls its GPUs ("h100", "nvidia_a100_80gb"), names one of another family than `gpu`.
bool IsOfAnotherFamily(std::string_view text, const Gpu& gpu);

// By the driver's name, which must be the very same: a slice of a GPU (MIG), or a part with other memory, power or
// links, has another. nullptr where there is none.
const Gpu* FindGpuOfDriver(std::string_view driver_name);

// Why there is none of this driver's name, and which is nearest, in words: "'NVIDIA H100 80GB HBM3 MIG 1g.10gb' is a
// slice (MIG) of a GPU, with a part of its memory and multiprocessors".
std::string WhyNoGpu(std::string_view driver_name);

}  // namespace ridgeline
