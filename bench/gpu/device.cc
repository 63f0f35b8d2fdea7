#include <fmt/format.h>

#include <memory>

#include "bench/gpu/measure.h"
#include "engine/ops/cuda/cudnn_graph.h"
#include "tests/engine/device/cuda_machine.h"

namespace ridgeline {

void PrintDevice() {
  const engine::Cudnn& cudnn = engine::CudnnHere()();
  cudnnHandle_t created = nullptr;
  engine::CheckCudnn(cudnn, cudnn.cudnnCreate(&created), "starting it on this device");
  const std::unique_ptr<cudnnContext, cudnnStatus_t (*)(cudnnHandle_t)> handle(created, cudnn.cudnnDestroy);
  fmt::print("{}\n", engine::CudnnDevice(handle.get()).Describe(cudnn));
}

}  // namespace ridgeline
