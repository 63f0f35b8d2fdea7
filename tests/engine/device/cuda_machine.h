// The machine that CUDA's tests run on, with NVIDIA's libraries: the emulated one (tests/cuda_on_cpu) or, in the
// program gpu_tests, a GPU. RIDGELINE_CUDA_TESTS is defined in both. RIDGELINE_CUDA_ON_CPU is defined for the emulated
// machine: for tests that let its calls fail, count what ran, or choose its properties.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "engine/device/cuda/libraries.h"
#include "engine/device/cuda/runtime.h"
#include "run/gpus.h"

#ifdef RIDGELINE_CUDA_ON_CPU

#include "cuda_on_cpu/machine.h"
#include "tests/engine/device/fake_libraries.h"

namespace ridgeline::engine {

namespace cuda_machine = cuda_on_cpu;
inline CudaLibraries LibrariesHere() { return FakeLibraries(); }
inline const Cudnn& (*CudnnHere())() { return FakeCudnn; }
inline const Nccl& (*NcclHere())() { return FakeNccl; }

}  // namespace ridgeline::engine

#else

#include "engine/comm/nccl/nccl.h"

// The emulated machine's controls, for a GPU: it cannot be changed, and nothing counts its work.
namespace ridgeline::engine::cuda_machine {

struct MachineOptions {
  int devices = 1;
  int major = 0, minor = 0;
  int multiprocessors = 0;
  uint64_t seed = 0;
};
inline void ResetMachine(const MachineOptions& /*options*/ = {}) {}
inline size_t AllocatedBytes() { return 0; }
inline int64_t OpenHandles() { return 0; }
inline int64_t GridsRun() { return 0; }

}  // namespace ridgeline::engine::cuda_machine

namespace ridgeline::engine {

inline CudaLibraries LibrariesHere() { return {}; }
inline const Cudnn& (*CudnnHere())() { return LoadCudnn; }
inline const Nccl& (*NcclHere())() { return LoadNccl; }

}  // namespace ridgeline::engine

#endif

namespace ridgeline::engine {

inline constexpr bool kEmulatedMachine =
#ifdef RIDGELINE_CUDA_ON_CPU
    true;
#else
    false;
#endif

inline cudaDeviceProp PropertiesHere() {
  const auto ask = [] {
    cudaDeviceProp properties;
    CheckCuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    return properties;
  };
  if constexpr (kEmulatedMachine) return ask();  // the machine may have changed
  static const cudaDeviceProp properties = ask();
  return properties;
}
// 10 x major + minor.
inline int CapabilityHere() {
  const cudaDeviceProp properties = PropertiesHere();
  return 10 * properties.major + properties.minor;
}
// The GPU's name in a spec, or the driver's name for a GPU that no spec can name. For the emulated machine, its
// default.
inline std::string GpuHere() {
  if constexpr (kEmulatedMachine) return "h200";
  const std::string name = PropertiesHere().name;
  const Gpu* gpu = FindGpuOfDriver(name);
  return gpu == nullptr ? name : std::string(gpu->name);
}
// Whether code for this compute capability can run: the emulated machine can take any.
inline bool CanBe(int compute_capability) { return kEmulatedMachine || CapabilityHere() == compute_capability; }
// A GPU's capability, or the one that the emulated machine shall have.
inline int CapabilityOr(int emulated) { return kEmulatedMachine ? emulated : CapabilityHere(); }

}  // namespace ridgeline::engine
