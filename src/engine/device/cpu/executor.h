// Replays a traced program on this machine's cores, over one slab that is allocated once. A step allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/device/cpu/kernel.h"
#include "engine/device/layout.h"

namespace ridgeline::engine {

// Anonymous memory in huge pages, if available. The pages hold zeros and cost nothing until they are touched.
class Slab {
 public:
  // Throws Error(kOutOfMemory), with the bytes wanted and available, before touching anything, if the bytes cannot fit.
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

// Returns how many bytes a new process here may take: the least of MemAvailable and what the cgroups and RLIMIT_DATA
// leave.
int64_t AvailableBytes();

class CpuExecutor final : public Executor {
 public:
  // Allocates the slab and prepares every kernel. The trace, the layout and the kernels must outlive it. Programs of
  // several ranks need the queue, whose type comes from another room. Throws Error(kInternal) for an op that has no CPU
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

  // Returns a persistent tensor's data, between steps.
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
  std::vector<float> scalars_;  // read and not taken yet
};

}  // namespace ridgeline::engine
