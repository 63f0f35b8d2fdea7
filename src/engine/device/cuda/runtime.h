// Owners of what the CUDA runtime gives out, and the one way its errors are read.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ridgeline {

// Throws Error in words unless `error` is cudaSuccess; `what` names the call. kOutOfMemory where the device's memory,
// or memory that it can reach, is at its end; kInfrastructure where the driver, the device or the build is not what a
// run needs; kInternal where we used CUDA wrongly.
void CheckCuda(cudaError_t error, const char* what);

// Throws as CheckCuda where an earlier error has ended the device for this process: what a library says then is but its
// echo.
void CheckLost();

// What an owner gives back when it goes. An error that comes up then is an earlier call's, and was told by whoever
// waited.
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
    std::unique_ptr<std::byte, PinnedDeleter>;  // the host's, which the device copies from and to by itself

// Of the thread's device. They throw as CheckCuda does.
CudaStream NewCudaStream();  // that the legacy stream does not wait for
CudaEvent NewCudaEvent(bool timed = false);
DeviceBuffer NewDeviceBuffer(int64_t bytes);
PinnedBuffer NewPinnedBuffer(int64_t bytes);

}  // namespace ridgeline
