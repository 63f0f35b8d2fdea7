// Ranks as threads of a test, each with its own emulated device and its own program on it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cuda_on_cpu/machine.h"
#include "engine/comm/collective.h"
#include "engine/comm/gloo/collective.h"
#include "engine/comm/gloo/collective_queue.h"
#include "engine/comm/nccl/collective.h"
#include "engine/comm/nccl/collective_stream.h"
#include "engine/comm/nccl/nccl_communicator.h"
#include "engine/device/cpu/executor.h"
#include "engine/device/cuda/executor.h"
#include "engine/device/cuda/runtime.h"
#include "engine/device/layout.h"
#include "tests/engine/comm/ranks.h"
#include "tests/engine/device/fake_libraries.h"
#include "tests/engine/ops/op_runner.h"

namespace ridgeline::testing {

// values *= 2: the program's own work, on any device.
inline const Op<InPlaceOperands> kDouble{OpDef::Pass("double", BesideBudget("a test's"))};

template <typename T>
void Twice(T* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] += values[i];
}
inline void DoubleCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const Tensor values = call.operands(kDouble).writes.values;
  Twice(run.Data<float>(values), values.elements());
}
inline void DoubleCuda(const OpCall& call, const CudaRun& run, KernelState* /*state*/) {
  const Tensor values = call.operands(kDouble).writes.values;
  CheckCuda(cuda_on_cpu::Enqueue(run.stream,
                                 [data = run.Data<float>(values), count = values.elements()] {
                                   Twice(data, count);
                                   return cudaSuccess;
                                 }),
            "a test's work");
}

// The ops to record, the initial contents of their tensors, and the executors that run them.
class Program {
 public:
  Program() {
    AddCollectivesCpu(on_cpu_);
    on_cpu_[&kDouble].run = DoubleCpu;
    AddCollectivesCuda(on_cuda_);
    on_cuda_[&kDouble].run = DoubleCuda;
  }

  Trace trace;

  Tensor Make(DType dtype, int64_t rows, int64_t cols, std::vector<float> values) {
    const Tensor tensor = Empty(dtype, rows, cols);
    contents_.emplace_back(tensor, std::move(values));
    return tensor;
  }
  Tensor Empty(DType dtype, int64_t rows, int64_t cols) { return trace.Persistent(dtype, rows, cols, Category::kData); }

  void UseCpu(Communicator& ranks) {
    layout_ = PlanLayout(trace);
    executor_ = std::make_unique<CpuExecutor>(trace, layout_, on_cpu_, std::make_shared<CollectiveQueue>(ranks));
  }
  void UseDevice(int64_t device, std::shared_ptr<CudaCollectives> collectives) {
    layout_ = PlanLayout(trace);
    executor_ = std::make_unique<CudaExecutor>(trace, layout_, on_cuda_,
                                               CudaOptions{.device = static_cast<int>(device)}, std::move(collectives));
  }

  // Starts from the tensors' initial contents. A device's first step is queued call by call, the second is captured.
  void Step() {
    for (const auto& [tensor, values] : contents_) {
      std::vector<std::byte> bytes;
      for (const float value : values) {
        const uint16_t half = tensor.dtype == DType::kF16 ? ToFp16(value) : Bf16Bits(value);
        const auto* from = tensor.dtype == DType::kF32 ? reinterpret_cast<const std::byte*>(&value)
                                                       : reinterpret_cast<const std::byte*>(&half);
        bytes.insert(bytes.end(), from, from + SizeOf(tensor.dtype));
      }
      executor_->Write<std::byte>(OfBytes(tensor), 0, bytes);
    }
    executor_->Step({});
  }

  std::vector<std::vector<float>> Read(const std::vector<Tensor>& tensors) const {
    std::vector<std::vector<float>> values;
    for (const Tensor& tensor : tensors) values.push_back(Read(tensor));
    return values;
  }
  std::vector<float> Read(const Tensor& tensor) const {
    std::vector<float> values;
    if (tensor.dtype == DType::kF32) return executor_->Read<float>(tensor, 0, tensor.elements());
    for (const uint16_t half : executor_->Read<uint16_t>(tensor, 0, tensor.elements())) {
      values.push_back(tensor.dtype == DType::kF16 ? FromFp16(half) : Bf16Value(half));
    }
    return values;
  }

 private:
  static Tensor OfBytes(Tensor tensor) {
    tensor.offset *= SizeOf(tensor.dtype);
    tensor.dtype = DType::kU8;
    return tensor;
  }

  CpuKernelTable on_cpu_;
  CudaKernelTable on_cuda_;
  std::vector<std::pair<Tensor, std::vector<float>>> contents_;
  Layout layout_;
  std::unique_ptr<Executor> executor_;
};

// Runs fn(rank's communicator) on one thread for each rank, with the rank's device as the thread's. Returns what each
// threw. A rank that throws tells the others, as the trainer does.
inline std::vector<std::string> OnDevices(const Mesh& mesh, double timeout_s,
                                          const std::function<void(Communicator&)>& fn) {
  const ReservedPort port;
  return OnThreads(mesh.ranks(), [&](int64_t rank) {
    CheckCuda(cudaSetDevice(static_cast<int>(rank)), "cudaSetDevice");
    const auto ranks = ConnectGloo(PlaceOf(rank, mesh.ranks(), port, timeout_s), {{"spec", "the same"}}, mesh);
    try {
      fn(*ranks);
    } catch (const Error& why) {
      ranks->Abandon(why);
      throw;
    }
  });
}

// The same along one axis.
inline std::vector<std::string> OnDevices(int64_t world, double timeout_s,
                                          const std::function<void(Communicator&)>& fn) {
  return OnDevices(Mesh({.data = world}), timeout_s, fn);
}

inline std::shared_ptr<CudaCollectives> Connected(const Nccl& nccl, Communicator& ranks) {
  return std::make_shared<CollectiveStream>(ranks, [&nccl](Communicator& group) { return ConnectNccl(nccl, group); });
}

}  // namespace ridgeline::testing
