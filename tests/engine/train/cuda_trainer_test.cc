// Whole runs on a machine with CUDA: the trainer's loss one step late, the ends of a run, and who is blamed for them.
// cuda_steps_test.cc checks what steps compute.
#ifdef RIDGELINE_CUDA_TESTS
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "engine/comm/gloo/rank_environment.h"
#include "engine/train/cuda_device.h"
#include "engine/train/trainer.h"
#include "engine/train/verify.h"
#include "run/gpu_limits.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/device/cuda_machine.h"
#include "tests/engine/train/specs.h"
#include "tests/fakes/fake_nvml.h"
#include "tests/source_dir.h"

#ifdef RIDGELINE_CUDA_ON_CPU
#include "cuda_on_cpu/cublaslt.h"
#include "cuda_on_cpu/cudnn.h"
#endif

namespace ridgeline::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

NvidiaLibraries AllLibrariesHere() { return {LibrariesHere(), NcclHere(), kEmulatedMachine ? FakeNvml : LoadNvml}; }

std::unique_ptr<TrainingDevice> OpenHere(const RunSpec& spec, const DeviceOptions& options) {
  return OpenCudaDevice(spec, options, LocalRank(), AllLibrariesHere());
}

Json TinyOnCuda(const std::string& family = "llama") {
  Json values = TinyModel(family);
  values.update({{"layers", 1}, {"warmup_steps", 1}, {"steps", 4}, {"grad_clip", 1.0}, {"precision", "fp32"}});
  return values;
}

RunSpec OnCuda(Json values) {
  values.update({{"device", "cuda"}, {"gpu", GpuHere()}});
  return SpecFrom(values);
}

class CudaTrainer : public ::testing::Test {
 protected:
  CudaTrainer() {
    cuda_machine::ResetMachine();
#ifdef RIDGELINE_CUDA_ON_CPU
    cuda_on_cpu::ResetCudnn();
#endif
    ThisCard() = &card_;
  }

  // Runs until `leave_after` steps of this run are done, or to its end.
  static RunResult Run(const RunSpec& spec, TrainOptions options = {}, int64_t leave_after = INT64_MAX) {
    int64_t steps = 0;
    if (!options.open_cuda) options.open_cuda = OpenHere;
    options.on_step = [&](const StepReport&) { ++steps; };
    options.told_to_leave = [&] { return steps >= leave_after; };
    return Train(spec, options).result;
  }
  // Nothing of a run is left on the machine.
  static void ExpectNothingLeft() {
    EXPECT_EQ(cuda_machine::AllocatedBytes(), 0U);
    EXPECT_EQ(cuda_machine::OpenHandles(), 0);
  }

  TempDir dir_;
  FakeCard card_;
};

TEST_F(CudaTrainer, TrainsAsTheCpuDoes) {
  for (const std::string& family : kFamilies) {
    SCOPED_TRACE(family);
    const RunSpec spec = OnCuda(TinyOnCuda(family));
    const RunResult cuda = Run(spec);
    const RunResult cpu = Train(SpecFrom(TinyOnCuda(family)), {}).result;
    ASSERT_EQ(cuda.status, RunStatus::kOk) << cuda.message;
    ASSERT_EQ(cuda.loss.size(), 5U);
    for (size_t i = 0; i < cuda.loss.size(); ++i) {
      EXPECT_NEAR(cuda.loss[i], cpu.loss[i], 1e-5 * cpu.loss[i]) << "step " << i + 1;
      EXPECT_NEAR(cuda.grad_norm[i], cpu.grad_norm[i], 1e-4 * cpu.grad_norm[i]) << "step " << i + 1;
    }
    EXPECT_EQ(cuda.device, PropertiesHere().name);
    EXPECT_EQ(cuda.environment.at("gpus"), PropertiesHere().name);
    EXPECT_EQ(cuda.memory.planned_peak_bytes, BuildStep(spec).layout.slab_bytes);
    // On a GPU the peak includes what other programs take or free meanwhile. Other shards of these tests do so if they
    // run beside it.
    if (kEmulatedMachine || std::getenv("GTEST_TOTAL_SHARDS") == nullptr) {
      EXPECT_GE(cuda.memory.device_peak_bytes, cuda.memory.planned_peak_bytes);
    }
    if (kEmulatedMachine) {
      EXPECT_LE(cuda.memory.device_peak_bytes, cuda.memory.planned_peak_bytes + 4096) << "beside the slab";
    }
    EXPECT_EQ(cuda.step_ns.all_ns.size(), 5U);
    EXPECT_FALSE(cuda.emulated);
    EXPECT_EQ(cpu.memory.device_peak_bytes, 0);
    ExpectNothingLeft();
  }
}

TEST_F(CudaTrainer, GivesTheSameBitsAsAGraphAndCallByCall) {
  Json values = TinyOnCuda();
  values["precision"] = "bf16";
  const RunResult graph = Run(OnCuda(values));
  ASSERT_EQ(graph.status, RunStatus::kOk) << graph.message;
  for (const bool beside : {false, true}) {
    TrainOptions options;
    options.device.graph = options.device.beside_products = beside;
    const RunResult other = Run(OnCuda(values), options);
    EXPECT_EQ(std::pair(other.loss, other.grad_norm), std::pair(graph.loss, graph.grad_norm)) << beside;
    EXPECT_EQ(other.environment.contains("beside_products"), beside);
  }
}

TEST_F(CudaTrainer, MultipliesTf32Itself) {
  Json values = TinyOnCuda();
  values.update({{"precision", "tf32"}, {"steps", 1}});
  const RunResult result = Run(OnCuda(values));
  ASSERT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_FALSE(result.emulated);
}

// Tensor cores support fp8, but not 74 tokens, which are no multiple of their size. So bf16 is multiplied instead.
TEST_F(CudaTrainer, SaysThatProductsOfSizesWhichTensorCoresLackAreEmulated) {
  Json values = TinyOnCuda();
  values.update({{"precision", "fp8"}, {"steps", 1}});
  const RunResult odd = Run(OnCuda(values));
  ASSERT_EQ(odd.status, RunStatus::kOk) << odd.message;
  EXPECT_TRUE(odd.emulated);
  if (CapabilityHere() < 89) return;
  values.update({{"hidden", 64}, {"ffn", 96}, {"seq_length", 32}});
  EXPECT_FALSE(Run(OnCuda(values)).emulated);
}

// An incomplete file is reported, and ends nothing.
TEST_F(CudaTrainer, NotesAFileOfAlgorithmsThatItDoesNotTake) {
  WriteFile(dir_ / "cublaslt.json", "{");
  std::vector<std::string> notes;
  TrainOptions options;
  options.device.algorithms = dir_ / "cublaslt.json";
  options.device.on_note = [&](const std::string& note) { notes.push_back(note); };
  EXPECT_EQ(Run(OnCuda(TinyOnCuda()), options).status, RunStatus::kOk);
  EXPECT_THAT(notes, ::testing::ElementsAre(HasSubstr("cublaslt.json")));
  EXPECT_EQ(ReadFile(dir_ / "cublaslt.json"), "{");
}

// An update's number depends on the steps skipped before it. The host does not know them when it queues the next step.
TEST_F(CudaTrainer, SkipsTheStepsThatTheCpuSkips) {
  Json values = TinyOnCuda("stack");
  values.update({{"precision", "fp16"}, {"steps", 8}});
  const RunResult cpu = Train(SpecFrom(values), {}).result;
  const RunResult cuda = Run(OnCuda(values));
  ASSERT_EQ(cuda.status, RunStatus::kOk) << cuda.message;
  EXPECT_GT(cpu.skipped_steps, 0) << "no step was skipped, so this test shows nothing";
  EXPECT_EQ(cuda.skipped_steps, cpu.skipped_steps);
  for (size_t i = 0; i < cpu.loss.size(); ++i) EXPECT_NEAR(cuda.loss[i], cpu.loss[i], 1e-2 * cpu.loss[i]) << i;
}

// The step after the one that diverged is already queued, but is not reported.
TEST_F(CudaTrainer, EndsWithTheStepThatDiverged) {
  Json values = TinyOnCuda("gpt");
  values.update({{"learning_rate", 1e3}, {"steps", 30}, {"grad_clip", 0}});
  const RunResult cpu = Train(SpecFrom(values), {}).result;
  const RunResult cuda = Run(OnCuda(values));
  ASSERT_EQ(cpu.status, RunStatus::kDiverged);
  EXPECT_EQ(cuda.status, RunStatus::kDiverged);
  EXPECT_EQ(cuda.evidence.at("step"), std::to_string(cuda.loss.size()));
  EXPECT_FALSE(std::isfinite(cuda.loss.back()));
  EXPECT_EQ(cuda.step_ns.all_ns.size(), cuda.loss.size());
  ExpectNothingLeft();
}

TEST_F(CudaTrainer, LeavesAndContinuesToTheBit) {
  for (const char* precision : {"bf16", "fp16"}) {
    Json values = TinyOnCuda();
    values.update({{"precision", precision}, {"dropout", 0.1}, {"steps", 7}});
    SCOPED_TRACE(precision);
    fs::remove_all(dir_ / "ck");
    const RunResult whole = Run(OnCuda(values));
    ASSERT_EQ(whole.status, RunStatus::kOk) << whole.message;
    RunSpec saving = OnCuda(values);
    saving.checkpoint_dir = dir_ / "ck";
    saving.checkpoint_every_steps = 3;
    const RunResult first = Run(saving, {}, 4);
    EXPECT_EQ(first.reason, InfrastructureReason::kPreempted) << first.message;
    // One step was queued after the fourth. It is completed, and the state after it is saved.
    EXPECT_EQ(first.evidence.at("checkpoint_step"), "5");
    const RunResult second = Run(saving);
    ASSERT_EQ(second.status, RunStatus::kOk) << second.message;
    EXPECT_EQ(second.evidence.at("resumed_from_step"), "5");
    EXPECT_EQ(second.loss, whole.loss);
  }
}

TEST_F(CudaTrainer, ContinuesWhatACpuBegan) {
  Json values = TinyOnCuda();
  values["steps"] = 5;
  RunSpec on_cpu = SpecFrom(values);
  on_cpu.checkpoint_dir = dir_ / "ck";
  int64_t steps = 0;
  TrainOptions leave;
  leave.on_step = [&](const StepReport&) { ++steps; };
  leave.told_to_leave = [&] { return steps == 3; };
  Train(on_cpu, leave);
  RunSpec on_cuda = OnCuda(values);
  on_cuda.checkpoint_dir = dir_ / "ck";
  const RunResult result = Run(on_cuda);
  ASSERT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.evidence.at("resumed_from_step"), "3");
  const RunResult whole = Train(SpecFrom(values), {}).result;
  for (size_t i = 0; i < whole.loss.size(); ++i) EXPECT_NEAR(result.loss[i], whole.loss[i], 1e-5 * whole.loss[i]);
}

TEST_F(CudaTrainer, ProfilesItsOps) {
  TrainOptions options;
  options.open_cuda = OpenHere;
  options.profile = true;
  const TrainOutcome outcome = Train(OnCuda(TinyOnCuda()), options);
  ASSERT_EQ(outcome.result.status, RunStatus::kOk) << outcome.result.message;
  ASSERT_FALSE(outcome.profile.empty());
  EXPECT_GT(outcome.profile.front().calls, 0);
}

TEST_F(CudaTrainer, ARankOfSeveralCanBeAlone) {
  for (const char* shard : {"none", "optimizer", "full"}) {
    Json values = TinyOnCuda();
    values.update({{"ranks", 4}, {"shard", shard}, {"communicator", "virtual"}, {"steps", 2}});
    const RunResult cuda = Run(OnCuda(values));
    const RunResult cpu = Train(SpecFrom(values), {}).result;
    ASSERT_EQ(cuda.status, RunStatus::kOk) << shard << ": " << cuda.message;
    for (size_t i = 0; i < cpu.loss.size(); ++i) EXPECT_NEAR(cuda.loss[i], cpu.loss[i], 1e-4 * cpu.loss[i]) << shard;
  }
}

#ifdef RIDGELINE_CUDA_ON_CPU

NvidiaLibraries LibrariesWithFakeCudnn() {
  NvidiaLibraries libraries = AllLibrariesHere();
  libraries.cuda.cudnn = FakeCudnn;
  return libraries;
}
std::unique_ptr<TrainingDevice> OpenWithFakeCudnn(const RunSpec& spec, const DeviceOptions& options) {
  return OpenCudaDevice(spec, options, LocalRank(), LibrariesWithFakeCudnn());
}

// The second run uses the algorithm that the first one measured.
TEST_F(CudaTrainer, MeasuresProductsOnceAndGivesTheSameBits) {
  cuda_on_cpu::ResetCublasLt({{20'000, 10'000, 30'000}});
  TrainOptions options;
  options.device.algorithms = dir_ / "cache" / "cublaslt.json";
  const RunSpec spec = OnCuda(TinyOnCuda());
  const RunResult first = Run(spec, options);
  ASSERT_EQ(first.status, RunStatus::kOk) << first.message;
  const int64_t with_measuring = cuda_on_cpu::CublasLtProductsRun();
  const std::string kept = ReadFile(options.device.algorithms);
  EXPECT_THAT(kept, HasSubstr("NVIDIA H200, driver for"));
  cuda_on_cpu::ResetCublasLt({{10'000, 20'000, 30'000}});
  const RunResult second = Run(spec, options);
  const int64_t without = cuda_on_cpu::CublasLtProductsRun();
  EXPECT_GT(with_measuring, without);
  EXPECT_EQ(ReadFile(options.device.algorithms), kept);
  EXPECT_EQ(second.loss, first.loss);
  EXPECT_EQ(second.grad_norm, first.grad_norm);
  EXPECT_EQ(second.environment.at("gemm_algorithms"),
            "the fastest, kept in " + (dir_ / "cache/cublaslt.json").string());
  cuda_on_cpu::ResetCublasLt();
  const RunResult plain = Run(spec);
  EXPECT_EQ(cuda_on_cpu::CublasLtProductsRun(), without);
  EXPECT_EQ(plain.environment.at("gemm_algorithms"), "cuBLASLt's first");
  EXPECT_NEAR(plain.loss.back(), first.loss.back(), 1e-5 * plain.loss.back());
  ExpectNothingLeft();
}

// The extra work of products is named, and is the same whatever is kept for the backward pass.
TEST_F(CudaTrainer, NamesThePassesThatProductsDo) {
  TrainOptions options;
  options.device.algorithms = dir_ / "cublaslt.json";
  Json values = TinyOnCuda("gpt");
  const RunResult plain = Run(OnCuda(values));
  cuda_on_cpu::ResetCublasLt({.algorithm_ms = {20'000}, .epilogue_ms = -5'000});
  std::vector<double> losses;
  for (const char* policy : {"none", "selective"}) {
    values["checkpointing"] = policy;
    const RunResult result = Run(OnCuda(values), options);
    ASSERT_EQ(result.status, RunStatus::kOk) << result.message;
    EXPECT_EQ(result.environment.at("gemm_algorithms"), "the fastest, kept in " + options.device.algorithms.string() +
                                                            "; products do column_sum and gelu_backward");
    if (losses.empty()) losses = result.loss;
    EXPECT_EQ(result.loss, losses) << policy;
  }
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], plain.loss[i], 1e-5 * plain.loss[i]);
  cuda_on_cpu::ResetCublasLt();
  ExpectNothingLeft();
}

// Only two of the cases, because the emulated machine is slow.
TEST_F(CudaTrainer, VerifiesReferenceCases) {
  for (const char* name : {"llama-tiny", "gpt-odd"}) {
    const VerifyReport report =
        Verify(fs::path(SourceDir()) / "tests/engine/cases" / (std::string(name) + ".json"),
               {.precision = "fp32", .checkpointing = "full", .device = "cuda", .gpu = "h200"}, OpenHere);
    for (const VerifyLine& line : report.lines) {
      EXPECT_TRUE(line.ok()) << name << " " << line.what << " " << line.error << " > " << line.bound;
    }
  }
}

TEST_F(CudaTrainer, SaysWhatTheDeviceHadWhereTheSlabDoesNotFit) {
  const RunSpec spec = OnCuda(TinyOnCuda());
  const int64_t planned = BuildStep(spec).layout.slab_bytes;
  cuda_machine::ResetMachine({.device_bytes = static_cast<size_t>(planned - 1)});
  card_.others_bytes = 7'000'000;
  const RunResult result = Run(spec);
  EXPECT_EQ(result.status, RunStatus::kOomDevice);
  EXPECT_THAT(result.message, HasSubstr(std::to_string(planned)));
  EXPECT_EQ(result.evidence.at("wanted_bytes"), std::to_string(planned));
  EXPECT_EQ(result.evidence.at("available_bytes"), std::to_string(planned - 1));
  EXPECT_EQ(result.evidence.at("others_bytes"), "7000000");
  ExpectNothingLeft();
}

TEST_F(CudaTrainer, RefusesAnotherGpuThanTheSpecs) {
  Json values = TinyOnCuda();
  values.update({{"device", "cuda"}, {"gpu", "h100"}});
  const RunResult result = Run(SpecFrom(values));
  EXPECT_EQ(result.reason, InfrastructureReason::kNode);
  EXPECT_THAT(result.message, AllOf(HasSubstr("gpu: h100"), HasSubstr("'NVIDIA H200' of compute capability 9.0")));
  EXPECT_THAT(result.hint, HasSubstr("name the one that is here: gpu: h200"));
}

TEST_F(CudaTrainer, RefusesASliceOfTheSpecsGpu) {
  cuda_machine::ResetMachine({.name = "NVIDIA H200 MIG 1g.18gb"});
  const RunResult result = Run(OnCuda(TinyOnCuda()));
  EXPECT_EQ(result.reason, InfrastructureReason::kNode);
  EXPECT_THAT(result.hint, HasSubstr("is a slice (MIG) of a GPU"));
}

// By its name it is the one.
TEST_F(CudaTrainer, RefusesAPartThatIsNotWhole) {
  const auto refusal = [&] {
    const RunResult result = Run(OnCuda(TinyOnCuda()));
    EXPECT_EQ(result.reason, InfrastructureReason::kNode);
    return result.message;
  };
  cuda_machine::ResetMachine({.told_bytes = size_t{70} << 30});
  EXPECT_THAT(refusal(), HasSubstr("gpu: h200, but has 75.2 GB of memory, and a whole GPU of this kind shows 150 GB"));
  cuda_machine::ResetMachine({.multiprocessors = 114});
  EXPECT_THAT(refusal(), HasSubstr("but has 114 multiprocessors, and a whole GPU of this kind has 132"));
  cuda_machine::ResetMachine();
  card_.mig = true;
  EXPECT_THAT(refusal(), HasSubstr("but it is cut into instances (MIG)"));
}

// What computed it is part of a result.
TEST_F(CudaTrainer, SaysWhatComputedIt) {
  Json values = TinyOnCuda();
  values.update({{"steps", 1}, {"precision", "bf16"}, {"hidden", 16}, {"heads", 2}, {"kv_heads", 1}, {"head_dim", 8}});
  TrainOptions options;
  options.open_cuda = OpenWithFakeCudnn;
  const auto environment = [&] {
    const RunResult result = Run(OnCuda(values), options);
    EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
    return result.environment;
  };
  auto said = environment();
  for (const char* what : {"driver", "cublaslt", "cudnn", "gpu_memory_bytes"}) EXPECT_TRUE(said.contains(what)) << what;
  EXPECT_EQ(said["gpu_multiprocessors"], "132");
  EXPECT_EQ(said["gpu_mig"], "off");
  EXPECT_FALSE(said.contains("nccl")) << "nobody uses it";
  EXPECT_EQ(said["attention_forward"], "cuDNN's engine 0");
  EXPECT_EQ(said["attention_backward"], "cuDNN's engine 0, bits may differ between runs");
  values["attention_backward"] = "deterministic";
  EXPECT_EQ(environment()["attention_backward"], "cuDNN's engine 0");
  values["seq_length"] = 24;  // states of equal calls are shared
  cuda_on_cpu::ResetCudnn({.proposals = 2, .first_is_nondeterministic = true});
  said = environment();
  EXPECT_EQ(said["attention_forward"], "cuDNN's engine 1");
  EXPECT_EQ(said["attention_backward"], "cuDNN's engine 1");
  values["seq_length"] = 16;
  cuda_on_cpu::ResetCudnn({.proposals = 0});
  EXPECT_EQ(environment()["attention_backward"], "ours, many times slower: cuDNN refuses it: cuDNN proposes nothing");
  values["precision"] = "fp32";
  EXPECT_THAT(environment()["attention_forward"], HasSubstr("ours: cuDNN is asked for 16 bits"));
}

// Settings that no card has measured yet change who computes, and no byte of the plan.
TEST_F(CudaTrainer, ChoosesUnderTheLoadOfAStepAndAmongAllPlans) {
  Json values = TinyOnCuda();
  values.update({{"steps", 1}, {"precision", "bf16"}, {"hidden", 16}, {"heads", 2}, {"kv_heads", 1}, {"head_dim", 8}});
  TrainOptions options;
  options.open_cuda = OpenWithFakeCudnn;
  cuda_on_cpu::ResetCudnn({.proposals = 2, .ms = {20'000, 10'000}});
  options.device.algorithms = dir_ / "cublaslt.json";
  const RunResult plain = Run(OnCuda(values), options);
  options.device.load_seconds = 0.001;
  options.device.all_plans = true;
  const RunResult chosen = Run(OnCuda(values), options);
  ASSERT_EQ(chosen.status, RunStatus::kOk) << chosen.message;
  EXPECT_EQ(chosen.environment.at("gemm_algorithms"),
            "the fastest under load, kept in " + options.device.algorithms.string());
  EXPECT_EQ(chosen.environment.at("attention_forward"), "cuDNN's engine 1, the fastest of 2 plans");
  EXPECT_EQ(chosen.memory.planned_peak_bytes, plain.memory.planned_peak_bytes);
  EXPECT_EQ(chosen.loss, plain.loss) << "the emulated plans compute the same";
  cuda_on_cpu::ResetCudnn();
}

// Clocks settle in seconds: steps are run and discarded before the run, and blocks of its steps are then measured.
TEST_F(CudaTrainer, WarmsUpAndMeasuresForSeconds) {
  for (const auto& [family, precision] :
       {std::pair("llama", "fp8"), std::pair("gpt", "fp16"), std::pair("stack", "bf16")}) {
    SCOPED_TRACE(family);
    Json values = TinyOnCuda(family);
    values.update({{"precision", precision}, {"dropout", 0.1}, {"steps", 3}, {"seq_length", 8}, {"batch_size", 1}});
    const RunResult cold = Run(OnCuda(values));
    ASSERT_EQ(cold.status, RunStatus::kOk) << cold.message;
    TrainOptions options;
    options.warmup_seconds = 0.001;
    const RunResult warm = Run(OnCuda(values), options);
    EXPECT_EQ(warm.loss, cold.loss);
    EXPECT_EQ(warm.grad_norm, cold.grad_norm);
    options.measured_seconds = 3600;
    const RunResult long_one = Run(OnCuda(values), options, 9);
    EXPECT_GE(long_one.loss.size(), 9U) << "it went on until it was told to leave";
    options.measured_seconds = 1e-9;
    EXPECT_EQ(Run(OnCuda(values), options).loss, cold.loss) << "that much was measured anyway";
  }
}

TEST_F(CudaTrainer, SaysThatThereIsNoGpu) {
  cuda_machine::ResetMachine({.devices = 0});
  const RunResult result = Run(OnCuda(TinyOnCuda()));
  EXPECT_EQ(result.reason, InfrastructureReason::kNode);
  EXPECT_THAT(result.hint, HasSubstr("nvidia-smi"));
  const RunResult without = Train(OnCuda(TinyOnCuda()), {}).result;
  EXPECT_EQ(without.reason, InfrastructureReason::kNode);
  EXPECT_THAT(without.message, HasSubstr("built without the CUDA device"));
}

TEST_F(CudaTrainer, SaysHowTheGpuFared) {
  card_.others = 2;
  Json values = TinyOnCuda();
  values.update({{"steps", 1}, {"seq_length", 8}, {"batch_size", 1}});
  const RunSpec spec = OnCuda(values);
  RunResult result = Run(spec);
  ASSERT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.gpu.others, 2);
  EXPECT_GT(result.gpu.power_w, 0);
  EXPECT_EQ(result.gpu.power_max_w, 500);
  EXPECT_EQ(result.gpu.power_limit_w, 700);
  EXPECT_GT(result.gpu.energy_j, 0);
  EXPECT_EQ(result.gpu.throttled_share, 0);
  for (const GpuClockLimit& limit : GpuClockLimits()) {
    card_.limits = limit.nvml_bit;
    result = Run(spec);
    ASSERT_EQ(result.gpu.clock_limits.size(), 1U) << limit.name;
    EXPECT_GT(result.gpu.clock_limits[std::string(limit.name)], 0);
    EXPECT_EQ(result.gpu.throttled_share, limit.costs_speed ? 1 : 0) << limit.name;
    EXPECT_EQ(WhatThrottled(result.gpu), limit.costs_speed ? limit.words : "");
  }
  card_.begins = kNvmlDriverNotLoaded;
  const RunResult without = Run(spec);
  EXPECT_EQ(without.status, RunStatus::kOk) << "a run does not need NVML";
  EXPECT_EQ(without.gpu.power_w, std::nullopt);
}

TEST_F(CudaTrainer, NamesTheGpusHereAndWhatComputesOnThem) {
  cuda_machine::ResetMachine({.devices = 2, .device_bytes = size_t{141} << 30});
  const NvidiaLibraries libraries = LibrariesWithFakeCudnn();
  card_.uncorrected = 3;
  const std::string lines = DescribeGpus(libraries);
  EXPECT_THAT(lines, HasSubstr("GPU 1: NVIDIA H200, compute capability 9.0, 150 GB, gpu: h200\n"));
  EXPECT_THAT(lines, HasSubstr(": 3 uncorrected ECC errors\n"));
  for (const char* what : {"driver: ", "CUDA: driver for ", "cuBLASLt: ", "cuDNN: ", "NCCL: "})
    EXPECT_THAT(lines, HasSubstr(what));
  cuda_machine::ResetMachine({.devices = 1, .name = "NVIDIA TITAN"});
  EXPECT_THAT(DescribeGpus(libraries), HasSubstr("of no gpu: no gpu is called 'NVIDIA TITAN'"));
  cuda_machine::ResetMachine({.devices = 0});
  EXPECT_THAT(DescribeGpus(libraries), ::testing::StartsWith("no GPUs: "));
}

TEST_F(CudaTrainer, TakesTheGpuOfItsPlaceAmongTheRanksOfItsMachine) {
  struct Place {
    explicit Place(const char* rank) { ::setenv("LOCAL_RANK", rank, 1); }
    ~Place() { ::unsetenv("LOCAL_RANK"); }
  };
  cuda_machine::ResetMachine({.devices = 2});
  {
    const Place second("1");
    EXPECT_EQ(Run(OnCuda(TinyOnCuda())).status, RunStatus::kOk);
  }
  {
    const Place third("2");
    const RunResult result = Run(OnCuda(TinyOnCuda()));
    EXPECT_EQ(result.reason, InfrastructureReason::kNode);
    EXPECT_THAT(result.message, HasSubstr("rank 2 of this machine has no GPU: it sees 2"));
  }
  {
    const Place wrong("first");
    EXPECT_EQ(Run(OnCuda(TinyOnCuda())).status, RunStatus::kInvalid);
  }
  cuda_machine::ResetMachine({.devices = 1});  // a scheduler shows a rank only its own device
  const Place third("2");
  EXPECT_EQ(Run(OnCuda(TinyOnCuda())).status, RunStatus::kOk);
}

// Any call of the runtime may find the device gone. Such a run gives no figure, and leaves nothing behind.
TEST_F(CudaTrainer, EndsInWordsWhicheverCallFails) {
  Json values = TinyOnCuda();
  values.update({{"steps", 2}, {"seq_length", 8}, {"batch_size", 1}});
  const RunSpec spec = OnCuda(values);
  ASSERT_EQ(Run(spec).status, RunStatus::kOk);
  const int64_t calls = cuda_machine::CallsMade();
  // Every seventh call: executor_test.cc checks each of the executor's.
  for (int64_t call = 1; call <= calls; call += 7) {
    cuda_machine::ResetMachine();
    cuda_machine::FailCall(call, cudaErrorECCUncorrectable);
    const RunResult result = Run(spec);
    if (result.status == RunStatus::kOk) continue;  // a call that only queries, or frees something
    EXPECT_EQ(result.reason, InfrastructureReason::kNode) << "call " << call << ": " << result.message;
    EXPECT_FALSE(result.message.empty());
    EXPECT_EQ(result.throughput.steady_tokens_per_s, 0) << call;
    ExpectNothingLeft();
  }
}

// Memory of the device, pinned memory, streams, events and the graph: there may be no room for any of them.
TEST_F(CudaTrainer, EndsForWantOfMemoryWhateverIsNotToBeHad) {
  Json values = TinyOnCuda();
  values.update({{"steps", 2}, {"seq_length", 8}, {"batch_size", 1}});
  const RunSpec spec = OnCuda(values);
  ASSERT_EQ(Run(spec).status, RunStatus::kOk);
  const int64_t allocations = cuda_machine::AllocationsMade();
  EXPECT_GT(allocations, 10);
  for (int64_t allocation = 1; allocation <= allocations; ++allocation) {
    cuda_machine::ResetMachine();
    cuda_machine::FailAllocation(allocation);
    SCOPED_TRACE(allocation);
    const RunResult result = Run(spec);
    EXPECT_EQ(result.status, RunStatus::kOomDevice) << result.message;
    EXPECT_FALSE(result.message.empty());
    EXPECT_EQ(result.evidence.at("wanted_bytes"), std::to_string(BuildStep(spec).layout.slab_bytes));
    EXPECT_EQ(result.throughput.steady_tokens_per_s, 0);
    ExpectNothingLeft();
  }
}

// The same for the objects that cuBLASLt and cuDNN make.
TEST_F(CudaTrainer, EndsForWantOfMemoryWhicheverCallOfALibraryFindsNone) {
  Json values = TinyOnCuda();
  values.update({{"steps", 2}, {"seq_length", 8}, {"batch_size", 1}, {"hidden", 32}, {"precision", "bf16"}});
  const RunSpec spec = OnCuda(values);
  TrainOptions options;
  options.open_cuda = [](const RunSpec& of, const DeviceOptions& with) {
    return OpenCudaDevice(of, with, LocalRank(), {{WatchedCublasLt, WatchedCudnn}, FakeNccl, FakeNvml});
  };
  LibraryWatch& watch = ThisWatch();
  std::map<std::string, int> failures;
  const auto run = [&](int call) {
    cuda_machine::ResetMachine();
    watch = {.fails_at = call, .wants_memory = true};
    const RunResult result = Run(spec, options);
    EXPECT_EQ(watch.alive, 0) << watch.failed;
    ExpectNothingLeft();
    if (!watch.failed.empty()) ++failures[watch.failed];
    return result;
  };
  ASSERT_EQ(run(0).status, RunStatus::kOk);
  // Every fifth, until a plan's start was among them, of which there are few: their own tests have each call of a
  // product and of attention.
  const int calls = watch.calls;
  for (int first = 1; first <= 5 && failures["cudnnBackendExecute"] == 0; ++first) {
    for (int call = first; call <= calls; call += 5) {
      const RunResult result = run(call);
      EXPECT_EQ(result.status, RunStatus::kOomDevice) << watch.failed << ": " << result.message;
      EXPECT_THAT(result.message, ::testing::AnyOf(HasSubstr("cuBLASLt: "), HasSubstr("cuDNN: ")));
    }
  }
  for (const char* function : {"cublasLtMatmul", "cublasLtMatrixLayoutCreate", "cudnnBackendExecute"}) {
    EXPECT_GT(failures[function], 0) << function;
  }
}

#endif

}  // namespace
}  // namespace ridgeline::engine
#endif
