// ridgeline-train-cuda on the emulated machine, with the emulator's libraries instead of NVIDIA's.
#include "engine/cli/train_command.h"
#include "engine/comm/gloo/rank_environment.h"
#include "engine/train/cuda_device.h"
#include "tests/engine/device/fake_libraries.h"
#include "tests/fakes/fake_nvml.h"

namespace ridgeline {
namespace {

std::unique_ptr<engine::TrainingDevice> OpenEmulated(const RunSpec& spec, const engine::DeviceOptions& options) {
  return engine::OpenCudaDevice(spec, options, engine::LocalRank(),
                                {engine::FakeLibraries(), engine::FakeNccl, FakeNvml});
}

std::string DescribeEmulated() {
  return engine::DescribeGpus(
      {{.cublaslt = engine::FakeCublasLt, .cudnn = engine::FakeCudnn}, engine::FakeNccl, FakeNvml});
}

}  // namespace
}  // namespace ridgeline

int main(int argc, char** argv) {
  ridgeline::FakeCard card;
  ridgeline::ThisCard() = &card;
  return ridgeline::engine::TrainMain(argc, argv, {ridgeline::OpenEmulated, ridgeline::DescribeEmulated, true});
}
