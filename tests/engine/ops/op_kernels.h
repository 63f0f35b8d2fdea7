// A device's kernels as tests run them: over a slab in this process's memory, wherever the device's own memory is.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "engine/device/cpu/kernel.h"
#include "engine/device/trace.h"

#ifdef RIDGELINE_CUDA_TESTS
#include <cuda_runtime_api.h>

#include "engine/device/cuda/kernel.h"
#include "engine/device/cuda/runtime.h"
#include "tests/engine/device/cuda_machine.h"
#endif

namespace ridgeline::engine {

struct OpKernels {
  // Both throw Error(kInternal) if the device has no kernel for the call's op. `slab` is all of `run.slab`'s memory. A
  // call is prepared for the slab that it runs over.
  std::function<std::shared_ptr<KernelState>(const OpCall& call, const CpuRun& run, std::span<std::byte> slab)> prepare;
  std::function<void(const OpCall& call, const CpuRun& run, std::span<std::byte> slab, KernelState* state)> run;

  template <typename Table>
  static const auto& KernelOf(const Table& table, const OpCall& call) {
    const auto found = table.find(call.op);
    if (found == table.end()) throw Error(ErrorKind::kInternal, std::string(call.op->name) + " has no kernel");
    return found->second;
  }

  OpKernels() = default;
  // Kernels on CPUs compute in the slab itself.
  OpKernels(const CpuKernelTable& table)
      : prepare([table](const OpCall& call, const CpuRun&, std::span<std::byte>) {
          const CpuKernel& kernel = KernelOf(table, call);
          return kernel.prepare == nullptr ? nullptr : kernel.prepare(call);
        }),
        run([table](const OpCall& call, const CpuRun& on, std::span<std::byte>, KernelState* state) {
          KernelOf(table, call).run(call, on, state);
        }) {}

#ifdef RIDGELINE_CUDA_TESTS
  // Kernels on a machine with CUDA, which must outlive these and the states. The slab is copied to the machine's memory
  // before each call, and back after it. Attention uses our kernels, unless `with` has cuDNN.
  OpKernels(const CudaKernelTable& table, const CudaLibraries& with = {LibrariesHere().cublaslt, nullptr}) {
    auto memory = std::make_shared<CudaMemory>();
    auto libraries = std::make_shared<const CudaLibraries>(with);
    prepare = [table, libraries, memory](const OpCall& call, const CpuRun& on, std::span<std::byte> slab) {
      const CudaKernel& kernel = KernelOf(table, call);
      return kernel.prepare == nullptr ? nullptr
                                       : kernel.prepare(call, Cuda(memory->Of(slab.size()), on.offsets, *libraries));
    };
    run = [table, libraries, memory](const OpCall& call, const CpuRun& on, std::span<std::byte> slab,
                                     KernelState* state) {
      std::byte* const copy = memory->Of(slab.size());
      CheckCuda(cudaMemcpy(copy, slab.data(), slab.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
      CudaRun cuda = Cuda(copy, on.offsets, *libraries);
      // This stream waits for the copy: cudaMemcpy may return before its last bytes have arrived.
      CheckCuda(cudaStreamCreate(&cuda.stream), "cudaStreamCreate");
      KernelOf(table, call).run(call, cuda, state);
      CheckCuda(cudaStreamSynchronize(cuda.stream), "cudaStreamSynchronize");
      CheckCuda(cudaStreamDestroy(cuda.stream), "cudaStreamDestroy");
      CheckCuda(cudaMemcpy(slab.data(), copy, slab.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    };
  }

 private:
  class CudaMemory {
   public:
    CudaMemory() = default;
    CudaMemory(const CudaMemory&) = delete;
    CudaMemory& operator=(const CudaMemory&) = delete;
    ~CudaMemory() { cudaFree(data_); }
    // The address stays the same as long as a slab's size does.
    std::byte* Of(size_t bytes) {
      if (bytes != bytes_) {
        CheckCuda(cudaFree(data_), "cudaFree");
        CheckCuda(cudaMalloc(&data_, bytes), "cudaMalloc");
        bytes_ = bytes;
      }
      return static_cast<std::byte*>(data_);
    }

   private:
    void* data_ = nullptr;
    size_t bytes_ = 0;
  };
  static CudaRun Cuda(std::byte* slab, const int64_t* offsets, const CudaLibraries& libraries) {
    const cudaDeviceProp properties = PropertiesHere();
    return {.slab = slab,
            .offsets = offsets,
            .multiprocessors = properties.multiProcessorCount,
            .shared_bytes = static_cast<int64_t>(properties.sharedMemPerBlockOptin),
            .libraries = &libraries};
  }
#endif
};

}  // namespace ridgeline::engine
