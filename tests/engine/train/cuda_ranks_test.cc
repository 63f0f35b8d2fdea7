// Whole steps of several ranks, each with its own emulated GPU, over the emulator's NCCL. Together they learn what one
// CPU learns from the whole batch.
#ifdef RIDGELINE_CUDA_ON_CPU
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cuda_on_cpu/cublaslt.h"
#include "engine/step/program.h"
#include "engine/train/cuda_device.h"
#include "engine/train/model_state.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/comm/nccl/device_ranks.h"
#include "tests/engine/train/specs.h"
#include "tests/fakes/fake_nvml.h"

namespace ridgeline::engine {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

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

struct CudaSharing {
  std::string name;
  std::string shard;
  int64_t shard_ranks = 0;
};

// The ranks' losses together are within this share of those of one CPU that has all rows.
void ExpectWhatOneCpuLearns(Json values, const CudaSharing& sharing, double closeness) {
  values["batch_size"] = kWorld;
  const std::vector<double> whole = Losses(SpecFrom(values), *MakeCpuDevice(), *MakeSelfCommunicator());

  values.update({{"batch_size", 1}, {"ranks", kWorld}, {"device", "cuda"}, {"gpu", "h200"}});
  values.update({{"shard", sharing.shard}, {"shard_ranks", sharing.shard_ranks}});
  const RunSpec spec = SpecFrom(values);
  cuda_on_cpu::ResetMachine({.devices = kWorld});
  FakeCard card;
  ThisCard() = &card;
  std::mutex mutex;
  std::vector<double> mean(kSteps);
  const auto errors = testing::OnDevices(MeshOf(spec), 300, [&](Communicator& ranks) {
    const auto device = OpenCudaDevice(spec, {}, ranks.rank(), {FakeLibraries(), FakeNccl, FakeNvml});
    const std::vector<double> losses = Losses(spec, *device, ranks);
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < losses.size(); ++i) mean[i] += losses[i] / kWorld;
  });
  for (const std::string& error : errors) ASSERT_EQ(error, "");
  for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(mean[i] / whole[i], 1, closeness) << "step " << i + 1;
  EXPECT_NE(mean.front(), mean.back());
  EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0U);
}

class CudaRanks : public ::testing::TestWithParam<CudaSharing> {};
INSTANTIATE_TEST_SUITE_P(Shards, CudaRanks,
                         ::testing::Values(CudaSharing{"none", "none"}, CudaSharing{"optimizer", "optimizer"},
                                           CudaSharing{"full", "full"}, CudaSharing{"hybrid", "full", kWorld / 2}),
                         [](const auto& info) { return info.param.name; });

TEST_P(CudaRanks, LearnWhatOneCpuLearnsFromTheWholeBatch) {
  for (const char* family : {"llama", "gpt"}) {
    SCOPED_TRACE(family);
    Json values = TinyModel(family);
    values.update({{"layers", 2}, {"seq_length", 11}, {"precision", "fp32"}, {"grad_clip", 1.0}});
    ExpectWhatOneCpuLearns(values, GetParam(), 1e-5);
  }
}

// The same with fewer bits. A rank rounds other numbers than a single process that sums all ranks' rows, and delayed
// scales come from the largest over all ranks. The sizes are those for which tensor cores accept codes.
TEST_P(CudaRanks, LearnInFewerBitsWhatOneCpuLearnsFromTheWholeBatch) {
  for (const auto& [numbers, closeness] :
       {std::pair{Numbers{"bf16", "fp32"}, 1e-3}, {Numbers{"fp8", "bf16"}, 5e-3}, {Numbers{"nvfp4", "fp32"}, 2e-2}}) {
    SCOPED_TRACE(numbers.precision + " " + numbers.state);
    Json values = TinyModel("llama");
    values.update({{"layers", 1}, {"hidden", 64}, {"ffn", 96}, {"seq_length", 32}, {"grad_clip", 1.0}});
    numbers.AddTo(values);
    ExpectWhatOneCpuLearns(values, GetParam(), closeness);
  }
}

// Ranks that wait for their GPUs leave each other the cores, if they are few.
TEST(CudaRanksOfOneRun, LetTheHostSleepWhereCoresAreFew) {
  Json values = TinyModel("llama");
  values.update({{"device", "cuda"}, {"gpu", "h200"}});
  cuda_on_cpu::ResetMachine();
  FakeCard card;
  ThisCard() = &card;
  ::setenv("LOCAL_WORLD_SIZE", "60000", 1);
  const auto device = OpenCudaDevice(SpecFrom(values), {}, 0, {FakeLibraries(), FakeNccl, FakeNvml});
  ::unsetenv("LOCAL_WORLD_SIZE");
  unsigned flags = 0;
  EXPECT_EQ(cudaGetDeviceFlags(&flags), cudaSuccess);
  EXPECT_EQ(flags, cudaDeviceScheduleBlockingSync);
}

// All ranks compute alike: none measures, and kept algorithms are used only if all ranks read the same.
TEST(CudaRanksOfOneRun, TakeTheSameAlgorithms) {
  Json values = TinyModel("llama");
  values.update({{"layers", 1}, {"seq_length", 11}, {"precision", "fp32"}, {"device", "cuda"}, {"gpu", "h200"}});
  cuda_on_cpu::ResetMachine({.devices = kWorld});
  cuda_on_cpu::ResetCublasLt({{20'000, 10'000}});
  FakeCard card;
  ThisCard() = &card;
  const TempDir dir;
  const auto file_of = [&](const std::string& name) { return dir / name; };
  const auto make = [&](const RunSpec& spec, Communicator& ranks, const std::filesystem::path& algorithms) {
    DeviceOptions options;
    options.algorithms = algorithms;
    const auto device = OpenCudaDevice(spec, options, ranks.rank(), {FakeLibraries(), FakeNccl, FakeNvml});
    const StepProgram program = BuildStep(spec, false, ranks.rank());
    const int64_t before = cuda_on_cpu::CublasLtProductsRun();
    device->MakeExecutor(program, ranks);
    std::map<std::string, std::string> environment;
    device->Describe(environment);
    return std::pair(environment.at("gemm_algorithms"), cuda_on_cpu::CublasLtProductsRun() - before);
  };
  // A single rank measures.
  const auto [alone, measured] = make(SpecFrom(values), *MakeSelfCommunicator(), file_of("kept"));
  EXPECT_THAT(alone, HasSubstr("the fastest"));
  EXPECT_GT(measured, 0);
  ASSERT_TRUE(std::filesystem::exists(file_of("kept")));

  values.update({{"ranks", kWorld}});
  const RunSpec spec = SpecFrom(values);
  const auto those_of = [&](const std::function<std::string(int64_t rank)>& name) {
    std::vector<std::string> took(kWorld);
    const auto errors = testing::OnDevices(MeshOf(spec), 300, [&](Communicator& ranks) {
      const std::string file = name(ranks.rank());
      const auto [what, runs] = make(spec, ranks, file.empty() ? "" : file_of(file));
      EXPECT_EQ(runs, 0);
      took[static_cast<size_t>(ranks.rank())] = what;
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
    return took;
  };
  const std::vector<std::string> firsts(kWorld, "cuBLASLt's first");
  EXPECT_THAT(those_of([](int64_t) { return "kept"; }), Each(HasSubstr("those of")));
  EXPECT_EQ(those_of([](int64_t rank) { return rank == 2 ? "missing" : "kept"; }), firsts);
  EXPECT_EQ(those_of([](int64_t rank) { return rank == 0 ? "" : "kept"; }), firsts);
  EXPECT_EQ(those_of([](int64_t) { return ""; }), firsts);
  EXPECT_FALSE(std::filesystem::exists(file_of("missing")));
  cuda_on_cpu::ResetCublasLt();
}

}  // namespace
}  // namespace ridgeline::engine
#endif
