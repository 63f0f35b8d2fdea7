#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/comm/gloo/collective.h"
#include "engine/comm/gloo/collective_queue.h"
#include "engine/device/cpu/executor.h"
#include "engine/ops/cpu/kernels.h"
#include "engine/train/cpu_kernels.h"
#include "engine/train/environment.h"
#include "engine/train/training_device.h"

namespace ridgeline::engine {
namespace {

// Throws if the slabs of the ranks on this machine do not fit together. Every rank checks before any of them takes its
// own.
void CheckRanksFit(int64_t slab_bytes, Communicator& communicator) {
  const int64_t ranks = communicator.ranks_here();
  if (ranks == 1) return;  // the slab checks by itself
  const int64_t available = AvailableBytes();
  communicator.Barrier();
  if (slab_bytes > available / ranks) {
    throw Error(ErrorKind::kOutOfMemory,
                fmt::format("{} ranks on this machine need {} each ({} bytes), and {} ({} bytes) are available", ranks,
                            FormatBytes(slab_bytes), slab_bytes, FormatBytes(available), available),
                "use fewer ranks a machine, shard: full, activation checkpointing, or a smaller batch_size");
  }
}

class CpuDevice final : public TrainingDevice {
 public:
  std::string name() const override { return CpuName(); }
  void Describe(std::map<std::string, std::string>& /*environment*/) const override {}  // every run has it
  std::unique_ptr<Executor> MakeExecutor(const StepProgram& program, Communicator& communicator) override {
    CheckRanksFit(program.layout.slab_bytes, communicator);
    auto collectives = std::make_shared<CollectiveQueue>(communicator);
    collectives_ = collectives;
    return std::make_unique<CpuExecutor>(program.trace, program.layout, CpuKernels(), std::move(collectives));
  }
  int64_t AvailableSlabBytes() const override { return AvailableBytes(); }
  RunStatus out_of_memory() const override { return RunStatus::kOomHost; }
  std::optional<int64_t> WaitedNs() const override {
    const std::shared_ptr<CollectiveQueue> collectives = collectives_.lock();
    return collectives == nullptr ? std::nullopt : std::optional(collectives->waited_ns());
  }

 private:
  std::weak_ptr<CollectiveQueue> collectives_;  // belongs to the executor
};

}  // namespace

const CpuKernelTable& CpuKernels() {
  static const CpuKernelTable table = [] {
    CpuKernelTable t;
    AddGemmCpu(t);
    AddAttentionCpu(t);
    AddNormCpu(t);
    AddElementwiseCpu(t);
    AddEmbeddingCpu(t);
    AddLossCpu(t);
    AddOptimizerCpu(t);
    AddQuantizeCpu(t);
    AddCollectivesCpu(t);
    return t;
  }();
  return table;
}

std::unique_ptr<TrainingDevice> MakeCpuDevice() { return std::make_unique<CpuDevice>(); }

std::unique_ptr<TrainingDevice> OpenDevice(const RunSpec& spec, const DeviceMaker& open_cuda,
                                           const DeviceOptions& options) {
  if (spec.device == "cpu") return MakeCpuDevice();
  if (open_cuda) return open_cuda(spec, options);
  throw Error(ErrorKind::kInfrastructure, "this trainer was built without the CUDA device",
              "build it where NVIDIA's CUDA toolkit is (docs/gpu.md)");
}

}  // namespace ridgeline::engine
