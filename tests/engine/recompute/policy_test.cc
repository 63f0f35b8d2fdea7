#include "engine/recompute/policy.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "engine/device/cpu/executor.h"
#include "engine/train/cpu_kernels.h"
#include "engine/train/model_state.h"
#include "engine/train/trainer.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

// Every gradient after one step, and every weight after two, as bits, so that a NaN equals itself.
std::vector<std::vector<uint32_t>> TwoSteps(const RunSpec& spec) {
  const StepProgram program = BuildStep(spec, true);
  CpuExecutor executor(program.trace, program.layout, CpuKernels());
  ModelState model(program, executor);
  model.Initialize();
  if (program.tensors.ids.defined()) {
    const Tensor& ids = program.tensors.ids;
    for (int64_t i = 0; i < ids.elements(); ++i) {
      executor.Data<int32_t>(ids)[i] = static_cast<int32_t>(i * 7 % spec.vocab);
      executor.Data<int32_t>(program.tensors.targets)[i] = static_cast<int32_t>(i * 11 % spec.vocab);
    }
  }
  std::vector<std::vector<uint32_t>> numbers;
  const auto add = [&](const std::vector<float>& values) {
    std::vector<uint32_t>& bits = numbers.emplace_back();
    for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  };
  executor.Step({1, 1e-3, 5});
  for (size_t p = 0; p < program.shape.parameters.size(); ++p) {
    for (const ParameterPart& part : program.shape.parameters[p].parts) add(model.Gradient(p, part));
  }
  executor.Step({2, 1e-3, 5});
  for (size_t p = 0; p < program.shape.parameters.size(); ++p) {
    for (const ParameterPart& part : program.shape.parameters[p].parts) add(model.Weight(p, part));
  }
  add({static_cast<float>(model.Loss())});
  return numbers;
}

TEST(RecomputePolicy, GradientsAreBitIdenticalUnderEveryPolicy) {
  for (const auto& [family, numbers] : kFamiliesInNumbers) {
    Json values = TinyModel(family);
    numbers.AddTo(values);
    values["dropout"] = 0.1;
    values["grad_accumulation"] = 2;
    const auto reference = TwoSteps(SpecFrom(values));
    float largest = 0;
    for (const uint32_t g : reference.front()) largest = std::max(largest, std::abs(std::bit_cast<float>(g)));
    if (family != "stack" || numbers.precision != "fp16") {  // its first gradients overflow because of loss scaling
      EXPECT_GT(largest, 0);
    }
    for (const std::string policy : {"selective", "full", "full/2", "full/3"}) {
      values["checkpointing"] = policy;
      SCOPED_TRACE(values.dump());
      EXPECT_TRUE(TwoSteps(SpecFrom(values)) == reference);
    }
  }
}

}  // namespace
}  // namespace ridgeline::engine
