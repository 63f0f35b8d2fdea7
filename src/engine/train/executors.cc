#include "engine/train/executors.h"

#include "engine/comm/gloo/collective.h"
#include "engine/comm/gloo/collective_queue.h"
#include "engine/device/cpu/executor.h"
#include "engine/ops/cpu/kernels.h"
#include "engine/train/cpu_kernels.h"

namespace ridgeline {

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

std::unique_ptr<Executor> MakeExecutor(const StepProgram& program, Communicator& communicator) {
  return std::make_unique<CpuExecutor>(program.trace, program.layout, CpuKernels(),
                                       std::make_shared<CollectiveQueue>(communicator));
}

int64_t AvailableSlabBytes() { return AvailableBytes(); }

}  // namespace ridgeline
