// The inputs of a CUDA kernel, and the table of kernels. Mirrors device/cpu/kernel.h.
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

namespace ridgeline::engine {

class AlgorithmFile;
class CudaCollectives;
struct CudaLibraries;
struct StepLoad;

// One execution of the program over a slab in device memory. Everything is queued on `stream` without waiting, so that
// a step can be captured as a graph.
struct CudaRun {
  std::byte* slab = nullptr;         // device memory
  const int64_t* offsets = nullptr;  // offset of each storage in the slab, in bytes
  cudaStream_t stream = nullptr;
  int multiprocessors = 0;
  int64_t shared_bytes = 0;                  // shared memory of a multiprocessor that one block may use
  const CudaLibraries* libraries = nullptr;  // cuBLASLt and cuDNN, for the kernels that use them
  CudaCollectives* collectives = nullptr;    // reaches other ranks; required for programs of several ranks
  AlgorithmFile* algorithms = nullptr;       // chooses libraries' algorithms by time and stores them; may be null
  StepLoad* load = nullptr;  // what they are measured under, on random operands; null: on a device that has just begun
  bool all_plans = false;    // measures all of cuDNN's plans, too, instead of taking its first
  bool beside = false;       // on a second stream, beside products: blocks are to be short, so that none waits for long
  // Notes for the result on which library computes what, by names of its environment. May be null. `prepare` writes
  // them.
  std::map<std::string, std::string>* notes = nullptr;

  // A pointer to device memory.
  template <typename T>
  T* Data(const Tensor& t) const {
    return reinterpret_cast<T*>(slab + offsets[t.storage]) + t.offset;
  }
  // The inputs that the executor copied to Trace::Inputs() before the step. Kernels read them on the device, so that a
  // replayed graph sees each step's. Null if no call reads them.
  const StepInputs* Inputs(const Tensor& t) const { return t.defined() ? Data<StepInputs>(t) : nullptr; }
};

struct CudaKernel {
  void (*run)(const OpCall& call, const CudaRun& run, KernelState* state) = nullptr;
  // Optional. Called once per recorded call before the first step, outside of any capture. May share states between
  // equal calls. It may use everything in `run` except the contents of tensors, which are undefined, and may be
  // overwritten while algorithms are measured.
  std::shared_ptr<KernelState> (*prepare)(const OpCall& call, const CudaRun& run) = nullptr;
  // Optional. Gives the same bits as running each of the calls, in fewer launches. No call touches what another writes.
  void (*run_together)(std::span<const OpCall> calls, const CudaRun& run) = nullptr;
  // Whether it may run beside the calls after it (CudaOptions::beside_products): memory bounds it, and its result is
  // needed late.
  bool beside = false;
};

using CudaKernelTable = std::unordered_map<const OpDef*, CudaKernel>;

}  // namespace ridgeline::engine
