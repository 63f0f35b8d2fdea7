// The arguments of a CPU kernel, and how kernels are found.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/device/executor.h"
#include "engine/device/kernel_state.h"
#include "engine/device/trace.h"

namespace ridgeline::engine {

class CollectiveQueue;

// One execution of the program over a slab.
struct CpuRun {
  std::byte* slab = nullptr;
  const int64_t* offsets = nullptr;        // of each storage in the slab, in bytes
  CollectiveQueue* collectives = nullptr;  // the way to other ranks; needed by programs of several ranks

  template <typename T>
  T* Data(const Tensor& t) const {
    return reinterpret_cast<T*>(slab + offsets[t.storage]) + t.offset;
  }
  // Returns the executor's values in Trace::Inputs(); t is undefined if no random number is needed.
  StepInputs Inputs(const Tensor& t) const { return t.defined() ? *Data<StepInputs>(t) : StepInputs{}; }
};

struct CpuKernel {
  void (*run)(const OpCall& call, const CpuRun& run, KernelState* state) = nullptr;
  // Optional. Called once per recorded call before the first step; may share states between equal calls.
  std::shared_ptr<KernelState> (*prepare)(const OpCall& call) = nullptr;
};

using CpuKernelTable = std::unordered_map<const OpDef*, CpuKernel>;

}  // namespace ridgeline::engine
