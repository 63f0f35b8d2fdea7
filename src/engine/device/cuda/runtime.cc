#include "engine/device/cuda/runtime.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/error.h"

namespace ridgeline::engine {
namespace {

struct Meaning {
  ErrorKind kind;
  const char* hint;
  bool lost = false;  // the device can do nothing more for this process
};

Meaning MeaningOf(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return {ErrorKind::kOutOfMemory,
              "use activation checkpointing, a smaller batch_size, seq_length or model, or a GPU with more memory"};
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      return {ErrorKind::kInfrastructure, "install a driver for this version of CUDA or a later one"};
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
      return {ErrorKind::kInfrastructure, "nvidia-smi -L lists the GPUs, and CUDA_VISIBLE_DEVICES chooses among them"};
    case cudaErrorDevicesUnavailable:
      return {ErrorKind::kInfrastructure, "another process holds the GPU: nvidia-smi names it"};
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return {ErrorKind::kInfrastructure, "build with the GPU's architecture in RIDGELINE_CUDA_ARCHITECTURES"};
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorContained:
    case cudaErrorUnknown:
      return {ErrorKind::kInfrastructure, "nvidia-smi -q and the kernel's log (Xid) say what is wrong with the GPU",
              true};
    case cudaErrorSystemNotReady:
      return {ErrorKind::kInfrastructure,
              "a machine with NVSwitches needs its fabric manager, of the driver's version: systemctl status "
              "nvidia-fabricmanager"};
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
      return {
          ErrorKind::kInfrastructure,
          "the daemon of MPS (nvidia-cuda-mps-control) does not answer: start it, or unset CUDA_MPS_PIPE_DIRECTORY"};
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
      return {ErrorKind::kInfrastructure, "others use the GPU by MPS, as many as may: end some, or use another GPU"};
    case cudaErrorMpsClientTerminated:
      return {ErrorKind::kInfrastructure, "another process under the same MPS failed, and ended this one: use no MPS",
              true};
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
      return {ErrorKind::kInternal, "compute-sanitizer names the kernel and the line", true};
    case cudaErrorLaunchTimeout:
      return {ErrorKind::kInfrastructure, "a GPU that also draws a screen ends long kernels: use another", true};
    default:
      return {ErrorKind::kInternal, ""};
  }
}

}  // namespace

void CheckCuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const Meaning meaning = MeaningOf(error);
  cudaGetLastError();  // reported here, and not by a later call
  throw Error(meaning.kind,
              fmt::format("{}: {} ({}){}", what, cudaGetErrorString(error), cudaGetErrorName(error),
                          meaning.lost ? "; the GPU computes nothing more for this process" : ""),
              meaning.hint);
}

void CheckLost() {
  size_t free = 0;
  size_t total = 0;
  const cudaError_t error = cudaMemGetInfo(&free, &total);
  if (error != cudaSuccess && MeaningOf(error).lost) CheckCuda(error, "an earlier call");
}

void OpenGpu(int number, bool host_sleeps) {
  CheckCuda(cudaInitDevice(number, host_sleeps ? cudaDeviceScheduleBlockingSync : cudaDeviceScheduleAuto,
                           cudaInitDeviceFlagsAreValid),
            "cudaInitDevice");
  CheckCuda(cudaSetDevice(number), "cudaSetDevice");
}

CudaStream NewCudaStream(StreamPriority priority) {
  cudaStream_t stream = nullptr;
  if (priority == StreamPriority::kPlain) {
    CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return CudaStream(stream);
  }
  int lowest = 0;  // a plain stream's. Smaller numbers are higher priorities.
  int highest = 0;
  CheckCuda(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  const int number = priority == StreamPriority::kHighest ? highest : std::max(lowest - 1, highest);
  CheckCuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, number), "cudaStreamCreateWithPriority");
  return CudaStream(stream);
}

CudaEvent NewCudaEvent(bool timed) {
  unsigned device_flags = 0;
  CheckCuda(cudaGetDeviceFlags(&device_flags), "cudaGetDeviceFlags");
  unsigned flags = timed ? cudaEventDefault : cudaEventDisableTiming;
  if ((device_flags & cudaDeviceScheduleMask) == cudaDeviceScheduleBlockingSync) flags |= cudaEventBlockingSync;
  cudaEvent_t event = nullptr;
  CheckCuda(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags");
  return CudaEvent(event);
}

DeviceBuffer NewDeviceBuffer(int64_t bytes) {
  void* memory = nullptr;
  CheckCuda(cudaMalloc(&memory, static_cast<size_t>(bytes)), "cudaMalloc");
  return DeviceBuffer(static_cast<std::byte*>(memory));
}

PinnedBuffer NewPinnedBuffer(int64_t bytes) {
  void* memory = nullptr;
  CheckCuda(cudaMallocHost(&memory, static_cast<size_t>(bytes)), "cudaMallocHost");
  return PinnedBuffer(static_cast<std::byte*>(memory));
}

}  // namespace ridgeline::engine
