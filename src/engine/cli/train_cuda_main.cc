// The trainer with NVIDIA's GPUs. It is a program of its own, so that the other one stays small, starts at once, and is
// built without waiting for nvcc.
#include "engine/cli/train_command.h"
#include "engine/comm/gloo/rank_environment.h"
#include "engine/train/cuda_device.h"

int main(int argc, char** argv) {
  const auto open = [](const ridgeline::RunSpec& spec, const ridgeline::engine::DeviceOptions& options) {
    return ridgeline::engine::OpenCudaDevice(spec, options, ridgeline::engine::LocalRank());
  };
  return ridgeline::engine::TrainMain(argc, argv, {open, [] { return ridgeline::engine::DescribeGpus(); }});
}
