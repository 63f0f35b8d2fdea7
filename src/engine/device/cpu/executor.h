// Replays a traced program on this machine's cores: one slab, allocated once; nothing is allocated inside a step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/device/cpu/kernel.h"
#include "engine/device/layout.h"

namespace ridgeline {

// Anonymous memory, asked for in huge pages. The pages hold zeros and cost nothing until they are touched.
class Slab {
 public:
  // Throws Error(kOutOfMemory) with the bytes wanted and available, before touching anything, where they can't fit.
  explicit Slab(int64_t bytes);
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab();
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// What a new process here may take: the least of MemAvailable, what the cgroups leave and RLIMIT_DATA leaves.
int64_t AvailableBytes();

class CpuExecutor final : public Executor {
 public:
  // Allocates the slab and prepares every kernel. The trace, the layout and the kernels must outlive it. Programs of
  // several ranks need the queue, whose type another room knows. Throws Error(kInternal) for an op that has no CPU
  // kernel.
  CpuExecutor(const Trace& trace, const Layout& layout, const CpuKernelTable& kernels,
              std::shared_ptr<CollectiveQueue> collectives = nullptr);

  void Step(const StepInputs& inputs) override;
  void QueueScalars(std::span<const Tensor> scalars) override;
  Scalars TakeScalars() override { return {std::move(scalars_), std::nullopt}; }
  void Zero(const Tensor& tensor) override;
  void Clear() override;
  int64_t slab_bytes() const override { return slab_.bytes(); }
  bool Multiplies(MathFormat format) const override {
    return format == MathFormat::kF32 || format == MathFormat::kBF16;
  }
  void EnableTiming() override { call_ns_.assign(calls_.size(), 0); }
  std::span<const int64_t> call_ns() const override { return call_ns_; }
  std::unique_ptr<Executor> Beside(const Trace& trace, const Layout& layout) const override {
    return std::make_unique<CpuExecutor>(trace, layout, kernels_);
  }

  // A persistent tensor's data, between steps.
  template <typename T>
  T* Data(const Tensor& tensor) {
    return run_.Data<T>(tensor);
  }

 protected:
  void Upload(const Tensor& to, int64_t byte, std::span<const std::byte> from) override;
  void Download(const Tensor& from, int64_t byte, std::span<std::byte> to) const override;

 private:
  struct Bound {
    const OpCall* call;
    void (*run)(const OpCall&, const CpuRun&, KernelState*);
    std::shared_ptr<KernelState> state;
  };
  const CpuKernelTable& kernels_;
  std::shared_ptr<CollectiveQueue> collectives_;
  Slab slab_;
  CpuRun run_;
  Tensor inputs_;  // Trace::inputs()
  std::vector<Bound> calls_;
  std::vector<int64_t> call_ns_;
  std::vector<float> scalars_;  // read and not taken
};

}  // namespace ridgeline
