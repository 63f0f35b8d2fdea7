// The properties of a device that decide how much memory a step takes on it, as data. So a step can be traced and
// planned to the byte for a device that is not present.
#pragma once

#include <cstdint>

namespace ridgeline::engine {

// Functions that record calls size scratch by it, and decide on fused ops. CPUs need no scratch beyond that of calls on
// every device.
struct DeviceDescription {
  int compute_capability = 0;           // a CUDA device's, 10 x major + minor (an H200's is 90); 0: CPUs
  int64_t product_workspace_bytes = 0;  // for each of cuBLASLt's products, of which one runs at a time

  bool cuda() const { return compute_capability > 0; }
};

// Includes the workspace that cuBLAS asks for: 32 MiB from Hopper on, 4 MiB before.
constexpr DeviceDescription CudaDevice(int compute_capability) {
  return {compute_capability, int64_t{compute_capability >= 90 ? 32 : 4} << 20};
}

}  // namespace ridgeline::engine
