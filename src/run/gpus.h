// NVIDIA's GPUs, by the names of a spec's `gpu`. The figures decide how a step is planned for an absent GPU, and how a
// present GPU is recognized as the requested one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ridgeline {

struct Gpu {
  std::string_view name;         // the name in a spec
  std::string_view product;      // the usual name: "H100"
  std::string_view driver_name;  // the driver's exact name: "NVIDIA H100 80GB HBM3"
  int compute_capability;        // 10 x major + minor
  int multiprocessors;
  int64_t total_bytes;   // nvidia-smi's total
  int64_t usable_bytes;  // the part that CUDA offers a program: the driver and the ECC keep the rest
};

// All known GPUs. Kernels are compiled for the architecture of each.
std::span<const Gpu> Gpus();

// nullptr if no GPU has this name.
const Gpu* FindGpu(std::string_view name);

// Whether `text`, a cluster's name for its GPUs ("h100", "nvidia_a100_80gb"), names another family than `gpu`.
bool IsOfAnotherFamily(std::string_view text, const Gpu& gpu);

// Finds a GPU by the driver's name, which must match exactly: a slice of a GPU (MIG), or a part with other memory,
// power or links, has another name. nullptr if there is none.
const Gpu* FindGpuOfDriver(std::string_view driver_name);

// Why no GPU has this driver's name, and which is nearest, in words: "'NVIDIA H100 80GB HBM3 MIG 1g.10gb' is a slice
// (MIG) of a GPU, with a part of its memory and multiprocessors".
std::string WhyNoGpu(std::string_view driver_name);

}  // namespace ridgeline
