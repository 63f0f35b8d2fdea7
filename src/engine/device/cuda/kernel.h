// What a CUDA kernel is given, and how kernels are found. Mirrors device/cpu/kernel.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include <cuda_runtime_api.h>

#include "engine/device/kernel_state.h"
#include "engine/device/trace.h"

namespace ridgeline {

class AlgorithmFile;
class CudaCollectives;
struct CudaLibraries;

// One execution of the program over a slab in device memory. Everything is queued on `stream` and nothing waits, so
// that a step can be captured as a graph.
struct CudaRun {
  std::byte* slab = nullptr;         // device memory
  const int64_t* offsets = nullptr;  // of each storage in the slab, in bytes
  cudaStream_t stream = nullptr;
  int multiprocessors = 0;
  int64_t shared_bytes = 0;                  // of a multiprocessor, that one block may take
  const CudaLibraries* libraries = nullptr;  // cuBLASLt and cuDNN, for the kernels that are theirs
  CudaCollectives* collectives = nullptr;    // where other ranks are reached; needed by programs of several ranks
  AlgorithmFile* algorithms = nullptr;       // where libraries' algorithms are chosen by time and kept; may be null
  // What a result is to say of who computes what, by names of an environment's; may be null. Written by `prepare`.
  std::map<std::string, std::string>* notes = nullptr;

  // A pointer to device memory.
  template <typename T>
  T* Data(const Tensor& t) const {
    return reinterpret_cast<T*>(slab + offsets[t.storage]) + t.offset;
  }
  // What the executor copied to Trace::Inputs() before the step: read by kernels, on the device, so that a graph that
  // is replayed sees each step's. Null where no call reads it.
  const StepInputs* Inputs(const Tensor& t) const { return t.defined() ? Data<StepInputs>(t) : nullptr; }
};

struct CudaKernel {
  void (*run)(const OpCall& call, const CudaRun& run, KernelState* state) = nullptr;
  // Optional. Called once per recorded call before the first step, outside of any capture; may share states between
  // equal calls. Of `run`, it may use everything but what tensors hold: that is nobody's yet, and may be written over
  // where algorithms are measured.
  std::shared_ptr<KernelState> (*prepare)(const OpCall& call, const CudaRun& run) = nullptr;
  // Optional. Does what running each of the calls does, to the bit, in fewer launches. None of them touches what
  // another writes.
  void (*run_together)(std::span<const OpCall> calls, const CudaRun& run) = nullptr;
};

using CudaKernelTable = std::unordered_map<const OpDef*, CudaKernel>;

}  // namespace ridgeline
