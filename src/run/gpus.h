// NVIDIA's GPUs by the names that a spec's `gpu` takes: what decides how a step is planned for one that is not there,
// and how one that is there is known to be the one that was asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ridgeline {

struct Gpu {
  std::string_view name;     // a spec's
  std::string_view product;  // as the driver names it, among other words: "NVIDIA H100 80GB HBM3"
  int compute_capability;    // 10 x major + minor
  int64_t memory_bytes;      // in all, as its data sheet says it
};

// Each is of an architecture that kernels are compiled for.
std::span<const Gpu> Gpus();

// nullptr where there is none of this name.
const Gpu* FindGpu(std::string_view name);

// Whether a driver's name for a GPU is one for this product.
bool IsProduct(std::string_view driver_name, const Gpu& gpu);

}  // namespace ridgeline
