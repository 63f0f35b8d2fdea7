// ridgeline-train-cuda on the emulated machine, with the emulator's libraries instead of NVIDIA's.
#include "engine/cli/train_command.h"
#include "engine/comm/gloo/rank_environment.h"
#include "engine/train/cuda_device.h"
#include "tests/engine/device/fake_libraries.h"
#include "tests/fakes/fake_nvml.h"

namespace ridgeline {
namespace {

std::unique_ptr<TrainingDevice> OpenEmulated(const RunSpec& spec, const DeviceOptions& options) {
  return OpenCudaDevice(spec, options, LocalRank(), {FakeLibraries(), FakeNccl, FakeNvml});
}

std::string DescribeEmulated() {
  return DescribeGpus({{.cublaslt = FakeCublasLt, .cudnn = FakeCudnn}, FakeNccl, FakeNvml});
}

}  // namespace
}  // namespace ridgeline

int main(int argc, char** argv) {
  ridgeline::FakeCard card;
  ridgeline::ThisCard() = &card;
  return ridgeline::TrainMain(argc, argv, {ridgeline::OpenEmulated, ridgeline::DescribeEmulated, true});
}
