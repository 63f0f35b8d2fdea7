// Whole steps of small models on a machine with CUDA. They compute what the CPU computes, with any order of threads,
// queued call by call or replayed as a graph, and with any recomputation.
#ifdef RIDGELINE_CUDA_TESTS
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/device/cpu/executor.h"
#include "engine/device/cuda/executor.h"
#include "engine/device/cuda/order.h"
#include "engine/device/speed.h"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/gemm.h"
#include "engine/ops/optimizer.h"
#include "engine/step/budget.h"
#include "engine/step/program.h"
#include "engine/train/cpu_kernels.h"
#include "engine/train/model_state.h"
#include "run/gpus.h"
#include "tests/engine/device/cuda_machine.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

const CudaKernelTable& Kernels() {
  static const CudaKernelTable table = [] {
    CudaKernelTable t;
    for (const auto add : {AddAttentionCuda, AddElementwiseCuda, AddEmbeddingCuda, AddGemmCuda, AddLossCuda,
                           AddNormCuda, AddOptimizerCuda, AddQuantizeCuda}) {
      add(t);
    }
    return t;
  }();
  return table;
}

struct Outcome {
  std::vector<double> losses;
  std::vector<std::vector<float>> gradients, weights;  // of every parameter, after the last step
  bool operator==(const Outcome&) const = default;
};

Outcome ThreeSteps(const StepProgram& program, Executor& executor) {
  ModelState model(program, executor);
  model.Initialize();
  if (program.tensors.ids.defined()) {
    const auto tokens = static_cast<size_t>(program.tokens_per_step());
    std::vector<int32_t> ids(tokens), targets(tokens);
    for (size_t i = 0; i < tokens; ++i) {
      ids[i] = static_cast<int32_t>(static_cast<int64_t>(i) * 7919 % program.spec.vocab);
      targets[i] = static_cast<int32_t>(static_cast<int64_t>(i + 1) * 7919 % program.spec.vocab);
    }
    executor.Write<int32_t>(program.tensors.ids, 0, ids);
    executor.Write<int32_t>(program.tensors.targets, 0, targets);
  }
  Outcome outcome;
  for (int64_t step = 1; step <= 3; ++step) {
    executor.Step({step, 1e-3, 7});
    outcome.losses.push_back(model.Loss());
  }
  for (size_t p = 0; p < program.shape.parameters.size(); ++p) {
    for (const ParameterPart& part : program.shape.parameters[p].parts) {
      outcome.gradients.push_back(model.Gradient(p, part));
      outcome.weights.push_back(model.Weight(p, part));
    }
  }
  return outcome;
}

Outcome OnCpu(const RunSpec& spec) {
  const StepProgram program = BuildStep(spec, true);
  CpuExecutor executor(program.trace, program.layout, CpuKernels());
  return ThreeSteps(program, executor);
}

// Runs on the GPU that the spec names, if it names one; the emulated machine then becomes that GPU.
Outcome OnCuda(const RunSpec& spec, uint64_t seed, bool graph = true, bool beside = false) {
  RunSpec on_cuda = spec;
  on_cuda.device = "cuda";
  if (spec.gpu == "none") on_cuda.gpu = GpuHere();
  const Gpu* gpu = FindGpu(on_cuda.gpu);
  const int capability = gpu == nullptr ? 0 : gpu->compute_capability;
  cuda_machine::ResetMachine({.major = capability / 10, .minor = capability % 10, .seed = seed});
  static const CudaLibraries libraries = LibrariesHere();
  const StepProgram program = BuildStep(on_cuda, true);
  CudaExecutor executor(program.trace, program.layout, Kernels(),
                        {.libraries = &libraries, .graph = graph, .beside_products = beside});
  EXPECT_EQ(executor.slab_bytes(), program.layout.slab_bytes);
  return ThreeSteps(program, executor);
}

RunSpec Spec(const std::string& family, const Numbers& numbers, const std::string& policy = "none") {
  Json values = TinyModel(family);
  values.update({{"layers", 2}, {"checkpointing", policy}, {"grad_clip", 1.0}});
  if (family == "gpt") values["dropout"] = 0.1;
  numbers.AddTo(values);
  return SpecFrom(values);
}

// |a - b| / |b| in the Euclidean norm, over all gradients together.
double Distance(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  double difference = 0;
  double size = 0;
  for (size_t p = 0; p < b.size(); ++p) {
    for (size_t i = 0; i < b[p].size(); ++i) {
      difference += std::pow(double{a[p][i]} - b[p][i], 2);
      size += std::pow(b[p][i], 2);
    }
  }
  return std::sqrt(difference / size);
}

class CudaSteps : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, CudaSteps, ::testing::ValuesIn(kFamilies),
                         [](const auto& info) { return info.param; });

TEST_P(CudaSteps, ComputeWhatTheCpuDoes) {
  std::vector<Numbers> all = kNumbers;
  all.push_back({"tf32", "fp32"});  // stored as fp32, so only this test needs it beside fp32
  for (const Numbers& numbers : all) {
    SCOPED_TRACE(numbers.precision + " state " + numbers.state + " " + numbers.primary);
    const RunSpec spec = Spec(GetParam(), numbers);
    const Outcome cpu = OnCpu(spec);
    const Outcome cuda = OnCuda(spec, 0);
    // If a number is rounded to the other side, all results that depend on it differ. NVIDIA does not say which way a
    // GPU's library rounds to TF32.
    const bool fp32 = numbers.precision == "fp32";
    const bool tf32 = numbers.precision == "tf32" && kEmulatedMachine;
    const bool wide = numbers.precision == "bf16" || numbers.precision == "fp16" || numbers.precision == "tf32";
    const double loss_bound = fp32 ? 1e-6 : tf32 ? 1e-5 : wide ? 1e-4 : 2e-3;
    for (size_t i = 0; i < cpu.losses.size(); ++i) {
      EXPECT_NEAR(cuda.losses[i] / cpu.losses[i], 1, loss_bound) << "step " << i + 1;
    }
    EXPECT_LT(Distance(cuda.gradients, cpu.gradients), fp32 ? 1e-5 : tf32 ? 1e-3 : wide ? 2e-2 : 0.4);
  }
}

TEST_P(CudaSteps, GiveTheSameBitsInAnyOrderAndAsAGraph) {
  for (const Numbers& numbers : {Numbers{"fp32", "fp32"}, Numbers{"bf16", "bf16"}, Numbers{"nvfp4", "fp32"}}) {
    SCOPED_TRACE(numbers.precision);
    const RunSpec spec = Spec(GetParam(), numbers);
    const Outcome first = OnCuda(spec, 0, false);
    for (const uint64_t seed : {0, 1, 2}) EXPECT_TRUE(OnCuda(spec, seed) == first) << "seed " << seed;
  }
}

TEST_P(CudaSteps, GiveTheSameBitsWhateverIsRecomputed) {
  for (const Numbers& numbers : {Numbers{"bf16", "fp32"}, Numbers{"fp8", "fp32"}}) {
    SCOPED_TRACE(numbers.precision);
    const Outcome none = OnCuda(Spec(GetParam(), numbers), 0);
    for (const std::string& policy : kPolicies) {
      EXPECT_TRUE(OnCuda(Spec(GetParam(), numbers, policy), 0) == none) << policy;
    }
  }
}

// What runs on a second stream waits for what it reads, and is waited for: with a clipped norm of the gradients,
// without which each weight is updated as soon as its gradient is known, and with gradients that are added up.
TEST_P(CudaSteps, GiveTheSameBitsWhereAdamRunsBesideProducts) {
  const struct {
    const char* family;
    Numbers numbers;
    Json values;
  } cases[] = {{"llama", {"bf16", "bf16"}, {{"grad_clip", 0.0}}},
               {"llama", {"fp8", "fp32"}, {{"grad_clip", 0.0}, {"checkpointing", "full"}}},
               {"gpt", {"bf16", "fp32"}, {{"grad_clip", 0.0}}},
               {"stack", {"bf16", "bf16"}, {{"grad_clip", 1.0}, {"grad_accumulation", 2}}}};
  for (const auto& [family, numbers, more] : cases) {
    if (family != GetParam()) continue;
    SCOPED_TRACE(numbers.precision + " state " + numbers.state + " " + more.dump());
    Json values = TinyModel(GetParam());
    values.update({{"layers", 2}});
    numbers.AddTo(values);
    values.update(more);
    const RunSpec spec = SpecFrom(values);
    const Outcome alone = OnCuda(spec, 0);
    EXPECT_TRUE(OnCuda(spec, 1, false, true) == alone) << "call by call";
    EXPECT_TRUE(OnCuda(spec, 2, true, true) == alone) << "as a graph";
  }
}

// The plan gives a gradient's bytes to others soon after its weight is updated. All the same, most updates end before
// that: docs/gpu.md has the share of Adam's time that the second stream can save, by the least times of all calls.
TEST(CudaAdamBesideProducts, FindsProductsThatDoNotWaitForItInThePlan) {
  const DeviceSpeed speed = *SpeedOf("h200");
  for (const char* policy : {"none", "full"}) {
    const StepProgram program = BuildStep(SpecFrom({{"model", "llama-8b"},
                                                    {"seq_length", 8192},
                                                    {"state_precision", "bf16"},
                                                    {"checkpointing", policy},
                                                    {"device", "meta"},
                                                    {"gpu", "h200"}}));
    SecondStream order;
    double adam_ns = 0, others_ns = 0, first_ns = 0, second_ns = 0;  // the last two: when each stream is done
    std::vector<double> ended_ns;
    for (const OpCall& call : program.trace.calls()) {
      SlabBytes bytes(program.trace, program.layout);
      bytes.Add(call);
      const double ns = LeastNs(call, speed);
      if (call.op == &kAdam) {
        adam_ns += ns;
        ended_ns.push_back(second_ns = std::max(first_ns, second_ns) + ns);
        order.Beside(std::move(bytes));
      } else {
        others_ns += ns;
        if (const auto after = order.WaitOf(bytes)) first_ns = std::max(first_ns, ended_ns[*after]);
        first_ns += ns;
      }
    }
    const double saved_ns = others_ns + adam_ns - std::max(first_ns, second_ns);
    EXPECT_EQ(fmt::format("{:.0f} of {:.0f} ms", saved_ns / 1e6, adam_ns / 1e6), "20 of 26 ms") << policy;
  }
}

TEST(CudaStepsInChunksOfLogits, ComputeWhatTheCpuDoes) {
  Json values = TinyModel("llama");
  values.update({{"layers", 1}, {"precision", "bf16"}, {"state_precision", "fp32"}, {"logits_chunk", 16}});
  const Outcome cpu = OnCpu(SpecFrom(values));
  const Outcome cuda = OnCuda(SpecFrom(values), 1);
  for (size_t i = 0; i < cpu.losses.size(); ++i) EXPECT_NEAR(cuda.losses[i] / cpu.losses[i], 1, 1e-4) << i + 1;
  EXPECT_LT(Distance(cuda.gradients, cpu.gradients), 2e-2);
}

// In sizes that tensor cores support; the sizes above are not.
TEST(CudaStepsOfCodes, AreMultipliedByTensorCoresAsTheCpuDoes) {
  const struct {
    const char* gpu;
    Numbers numbers;
    const char* scaling;
  } cases[] = {{"h200", {"fp8", "fp32"}, "delayed"},
               {"b200", {"mxfp8", "fp32"}, "round_up"},
               {"b200", {"nvfp4", "fp32"}, "none"}};
  for (const auto& [gpu, numbers, scaling] : cases) {
    SCOPED_TRACE(numbers.precision);
    if (!CanBe(FindGpu(gpu)->compute_capability)) continue;
    Json values = TinyModel("llama");
    values.update({{"layers", 1}, {"hidden", 64}, {"ffn", 96}, {"seq_length", 32}, {"scaling", scaling}});
    numbers.AddTo(values);
    const Outcome cpu = OnCpu(SpecFrom(values));
    values.update({{"device", "cuda"}, {"gpu", kEmulatedMachine ? gpu : GpuHere()}});
    const RunSpec spec = SpecFrom(values);
    EXPECT_TRUE(std::ranges::none_of(BuildStep(spec).trace.calls(), IsEmulated));
    const Outcome cuda = OnCuda(spec, 1);
    for (size_t i = 0; i < cpu.losses.size(); ++i) EXPECT_NEAR(cuda.losses[i] / cpu.losses[i], 1, 2e-3) << i + 1;
    EXPECT_LT(Distance(cuda.gradients, cpu.gradients), 0.4);
  }
}

}  // namespace
}  // namespace ridgeline::engine
#endif
