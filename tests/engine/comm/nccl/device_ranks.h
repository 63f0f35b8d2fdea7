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
inline const engine::Op<engine::InPlaceOperands> kDouble{
    engine::OpDef::Pass("double", engine::BesideBudget("a test's"))};

template <typename T>
void Twice(T* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] += values[i];
}
inline void DoubleCpu(const engine::OpCall& call, const engine::CpuRun& run, engine::KernelState* /*state*/) {
  const engine::Tensor values = call.operands(kDouble).writes.values;
  Twice(run.Data<float>(values), values.elements());
}
inline void DoubleCuda(const engine::OpCall& call, const engine::CudaRun& run, engine::KernelState* /*state*/) {
  const engine::Tensor values = call.operands(kDouble).writes.values;
  engine::CheckCuda(cuda_on_cpu::Enqueue(run.stream,
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
    engine::AddCollectivesCpu(on_cpu_);
    on_cpu_[&kDouble].run = DoubleCpu;
    engine::AddCollectivesCuda(on_cuda_);
    on_cuda_[&kDouble].run = DoubleCuda;
  }

  engine::Trace trace;

  engine::Tensor Make(engine::DType dtype, int64_t rows, int64_t cols, std::vector<float> values) {
    const engine::Tensor tensor = Empty(dtype, rows, cols);
    contents_.emplace_back(tensor, std::move(values));
    return tensor;
  }
  engine::Tensor Empty(engine::DType dtype, int64_t rows, int64_t cols) {
    return trace.Persistent(dtype, rows, cols, engine::Category::kData);
  }

  void UseCpu(engine::Communicator& ranks) {
    layout_ = engine::PlanLayout(trace);
    executor_ = std::make_unique<engine::CpuExecutor>(trace, layout_, on_cpu_,
                                                      std::make_shared<engine::CollectiveQueue>(ranks));
  }
  void UseDevice(int64_t device, std::shared_ptr<engine::CudaCollectives> collectives) {
    layout_ = engine::PlanLayout(trace);
    executor_ = std::make_unique<engine::CudaExecutor>(
        trace, layout_, on_cuda_, engine::CudaOptions{.device = static_cast<int>(device)}, std::move(collectives));
  }

  // Starts from the tensors' initial contents. A device's first step is queued call by call, the second is captured.
  void Step() {
    for (const auto& [tensor, values] : contents_) {
      std::vector<std::byte> bytes;
      for (const float value : values) {
        const uint16_t half = tensor.dtype == engine::DType::kF16 ? engine::ToFp16(value) : engine::Bf16Bits(value);
        const auto* from = tensor.dtype == engine::DType::kF32 ? reinterpret_cast<const std::byte*>(&value)
                                                               : reinterpret_cast<const std::byte*>(&half);
        bytes.insert(bytes.end(), from, from + engine::SizeOf(tensor.dtype));
      }
      executor_->Write<std::byte>(OfBytes(tensor), 0, bytes);
    }
    executor_->Step({});
  }

  std::vector<std::vector<float>> Read(const std::vector<engine::Tensor>& tensors) const {
    std::vector<std::vector<float>> values;
    for (const engine::Tensor& tensor : tensors) values.push_back(Read(tensor));
    return values;
  }
  std::vector<float> Read(const engine::Tensor& tensor) const {
    std::vector<float> values;
    if (tensor.dtype == engine::DType::kF32) return executor_->Read<float>(tensor, 0, tensor.elements());
    for (const uint16_t half : executor_->Read<uint16_t>(tensor, 0, tensor.elements())) {
      values.push_back(tensor.dtype == engine::DType::kF16 ? engine::FromFp16(half) : engine::Bf16Value(half));
    }
    return values;
  }

 private:
  static engine::Tensor OfBytes(engine::Tensor tensor) {
    tensor.offset *= engine::SizeOf(tensor.dtype);
    tensor.dtype = engine::DType::kU8;
    return tensor;
  }

  engine::CpuKernelTable on_cpu_;
  engine::CudaKernelTable on_cuda_;
  std::vector<std::pair<engine::Tensor, std::vector<float>>> contents_;
  engine::Layout layout_;
  std::unique_ptr<engine::Executor> executor_;
};

// Runs fn(rank's communicator) on one thread for each rank, with the rank's device as the thread's. Returns what each
// threw. A rank that throws tells the others, as the trainer does.
inline std::vector<std::string> OnDevices(const engine::Mesh& mesh, double timeout_s,
                                          const std::function<void(engine::Communicator&)>& fn) {
  const ReservedPort port;
  return OnThreads(mesh.ranks(), [&](int64_t rank) {
    engine::CheckCuda(cudaSetDevice(static_cast<int>(rank)), "cudaSetDevice");
    const auto ranks = engine::ConnectGloo(PlaceOf(rank, mesh.ranks(), port, timeout_s), {{"spec", "the same"}}, mesh);
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
                                          const std::function<void(engine::Communicator&)>& fn) {
  return OnDevices(engine::Mesh({.shard = world}), timeout_s, fn);
}

inline std::shared_ptr<engine::CudaCollectives> Connected(const engine::Nccl& nccl, engine::Communicator& ranks) {
  return std::make_shared<engine::CollectiveStream>(
      ranks, [&nccl](engine::Communicator& group) { return engine::ConnectNccl(nccl, group); });
}

}  // namespace ridgeline::testing
