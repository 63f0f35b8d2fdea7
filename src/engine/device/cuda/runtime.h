// Owners of CUDA runtime resources, and the only handling of its errors.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ridgeline::engine {

// Throws Error with an explanation unless `error` is cudaSuccess; `what` names the call. kOutOfMemory if the device's
// memory, or memory that it can reach, is exhausted; kInfrastructure if the driver, the device or the build is not what
// a run needs; kInternal if we used CUDA wrongly.
void CheckCuda(cudaError_t error, const char* what);

// Throws as CheckCuda if an earlier error has ended the device for this process. Libraries then only repeat that error.
void CheckLost();

// Releases an owner's resource. An error at this point comes from an earlier call, and the wait for that call reported
// it.
struct CudaDeleter {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
using CudaStream = std::unique_ptr<CUstream_st, CudaDeleter>;
using CudaEvent = std::unique_ptr<CUevent_st, CudaDeleter>;
using CudaGraph = std::unique_ptr<CUgraph_st, CudaDeleter>;
using CudaGraphExec = std::unique_ptr<CUgraphExec_st, CudaDeleter>;

struct DeviceDeleter {
  void operator()(std::byte* memory) const { cudaFree(memory); }
};
struct PinnedDeleter {
  void operator()(std::byte* memory) const { cudaFreeHost(memory); }
};
using DeviceBuffer = std::unique_ptr<std::byte, DeviceDeleter>;  // the device's memory: the host never dereferences it
using PinnedBuffer =
    std::unique_ptr<std::byte, PinnedDeleter>;  // the host's memory, which the device copies from and to by itself

// Makes the device current for the thread. Its context is created with the first call in a process; then it decides
// whether the host's threads sleep while they wait for the device, instead of spinning. Throws as CheckCuda.
void OpenGpu(int number, bool host_sleeps);

// For the thread's device. They throw as CheckCuda. The host waits for an event as OpenGpu says.
enum class StreamPriority : uint8_t { kPlain, kAbovePlain, kHighest };       // blocks of higher ones start first
CudaStream NewCudaStream(StreamPriority priority = StreamPriority::kPlain);  // the legacy stream does not wait for it
CudaEvent NewCudaEvent(bool timed = false);
DeviceBuffer NewDeviceBuffer(int64_t bytes);
PinnedBuffer NewPinnedBuffer(int64_t bytes);

}  // namespace ridgeline::engine
