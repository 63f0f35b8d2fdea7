// Whole steps of several ranks, each with an emulated GPU of its own, over the emulator's NCCL: what they learn
// together is what one CPU learns from the whole batch.
#ifdef RIDGELINE_CUDA_ON_CPU
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/step/program.h"
#include "engine/train/cuda_device.h"
#include "engine/train/model_state.h"
#include "tests/engine/comm/nccl/device_ranks.h"
#include "tests/engine/device/fake_nvml.h"
#include "tests/engine/train/specs.h"

namespace ridgeline {
namespace {

constexpr int64_t kWorld = 4;
constexpr int64_t kSteps = 3;  // the first queued call by call, the second recorded, the third replayed

// The losses of steps on this rank's rows of the batch.
std::vector<double> Losses(const RunSpec& spec, TrainingDevice& device, Communicator& ranks) {
  const StepProgram program = BuildStep(spec, false, ranks.rank());
  const std::unique_ptr<Executor> executor = device.MakeExecutor(program, ranks);
  EXPECT_EQ(executor->slab_bytes(), program.layout.slab_bytes);
  ModelState model(program, *executor);
  model.Initialize();
  const int64_t tokens = program.tokens_per_step();
  std::vector<int32_t> ids, targets;
  for (int64_t i = ranks.rank() * tokens; i < (ranks.rank() + 1) * tokens; ++i) {
    ids.push_back(static_cast<int32_t>(i * 7919 % spec.vocab));
    targets.push_back(static_cast<int32_t>((i + 1) * 7919 % spec.vocab));
  }
  executor->Write<int32_t>(program.tensors.ids, 0, ids);
  executor->Write<int32_t>(program.tensors.targets, 0, targets);
  std::vector<double> losses;
  for (int64_t step = 1; step <= kSteps; ++step) {
    executor->Step({step, 1e-2, 7});
    losses.push_back(model.Loss());
  }
  return losses;
}

class CudaRanks : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Shards, CudaRanks, ::testing::Values("none", "optimizer", "full"),
                         [](const auto& info) { return info.param; });

TEST_P(CudaRanks, LearnWhatOneCpuLearnsFromTheWholeBatch) {
  for (const char* family : {"llama", "gpt"}) {
    SCOPED_TRACE(family);
    Json values = TinyModel(family);
    values.update({{"layers", 2}, {"seq_length", 11}, {"precision", "fp32"}, {"grad_clip", 1.0}});
    values["batch_size"] = kWorld;
    const std::vector<double> whole = Losses(SpecFrom(values), *MakeCpuDevice(), *MakeSelfCommunicator());

    values.update({{"batch_size", 1}, {"ranks", kWorld}, {"shard", GetParam()}, {"device", "cuda"}, {"gpu", "h200"}});
    const RunSpec spec = SpecFrom(values);
    cuda_on_cpu::ResetMachine({.devices = kWorld});
    FakeCard card;
    ThisCard() = &card;
    std::mutex mutex;
    std::vector<double> mean(kSteps);
    const auto errors = testing::OnDevices(kWorld, 300, [&](Communicator& ranks) {
      const auto device = OpenCudaDevice(spec, {}, ranks.rank(), {FakeLibraries(), FakeNccl, FakeNvml});
      const std::vector<double> losses = Losses(spec, *device, ranks);
      const std::lock_guard lock(mutex);
      for (size_t i = 0; i < losses.size(); ++i) mean[i] += losses[i] / kWorld;
    });
    for (const std::string& error : errors) ASSERT_EQ(error, "");
    for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(mean[i], whole[i], 1e-5 * whole[i]) << "step " << i + 1;
    EXPECT_NE(mean.front(), mean.back());
    EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0U);
  }
}

}  // namespace
}  // namespace ridgeline
#endif
