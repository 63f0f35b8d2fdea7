// A device's kernels as tests run them: over a slab in this process's memory, whatever memory is the device's own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "engine/device/cpu/kernel.h"
#include "engine/device/trace.h"

#ifdef RIDGELINE_CUDA_ON_CPU
#include <cuda_runtime_api.h>

#include "cuda_on_cpu/machine.h"
#include "engine/device/cuda/kernel.h"
#include "engine/device/cuda/runtime.h"
#endif

namespace ridgeline {

struct OpKernels {
  // Throw Error(kInternal) where the device has no kernel of the call's op. `slab` is all of `run.slab`'s memory.
  std::function<std::shared_ptr<KernelState>(const OpCall& call)> prepare;
  std::function<void(const OpCall& call, const CpuRun& run, std::span<std::byte> slab, KernelState* state)> run;

  template <typename Table>
  static const auto& KernelOf(const Table& table, const OpCall& call) {
    const auto found = table.find(call.op);
    if (found == table.end()) throw Error(ErrorKind::kInternal, std::string(call.op->name) + " has no kernel");
    return found->second;
  }

  OpKernels() = default;
  // What runs on CPUs computes in the slab itself.
  OpKernels(const CpuKernelTable& table)
      : prepare([table](const OpCall& call) {
          const CpuKernel& kernel = KernelOf(table, call);
          return kernel.prepare == nullptr ? nullptr : kernel.prepare(call);
        }),
        run([table](const OpCall& call, const CpuRun& on, std::span<std::byte>, KernelState* state) {
          KernelOf(table, call).run(call, on, state);
        }) {}

#ifdef RIDGELINE_CUDA_ON_CPU
  // On the emulated machine (tests/cuda_on_cpu), which has to outlive the states: the slab is copied to its memory
  // before each call, and back after it.
  OpKernels(const CudaKernelTable& table)
      : prepare([table](const OpCall& call) {
          const CudaKernel& kernel = KernelOf(table, call);
          return kernel.prepare == nullptr ? nullptr : kernel.prepare(call, Cuda());
        }),
        run([table](const OpCall& call, const CpuRun& on, std::span<std::byte> slab, KernelState* state) {
          void* memory = nullptr;
          CheckCuda(cudaMalloc(&memory, slab.size()), "cudaMalloc");
          CheckCuda(cudaMemcpy(memory, slab.data(), slab.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
          CudaRun cuda = Cuda();
          cuda.slab = static_cast<std::byte*>(memory);
          cuda.offsets = on.offsets;
          CheckCuda(cudaStreamCreateWithFlags(&cuda.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
          KernelOf(table, call).run(call, cuda, state);
          CheckCuda(cudaStreamSynchronize(cuda.stream), "cudaStreamSynchronize");
          CheckCuda(cudaStreamDestroy(cuda.stream), "cudaStreamDestroy");
          CheckCuda(cudaMemcpy(slab.data(), memory, slab.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
          CheckCuda(cudaFree(memory), "cudaFree");
        }) {}

 private:
  static CudaRun Cuda() {
    CudaRun run;
    run.multiprocessors = cuda_on_cpu::MachineOptions().multiprocessors;
    return run;
  }
#endif
};

}  // namespace ridgeline
