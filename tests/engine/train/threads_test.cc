// A step's results do not depend on the number of threads. CTest runs this for every class of CPU.
#include <gtest/gtest.h>
#include <omp.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/device/cpu/executor.h"
#include "engine/step/program.h"
#include "engine/train/cpu_kernels.h"
#include "engine/train/model_state.h"
#include "engine/train/trainer.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

class ThreadLimit {
 public:
  explicit ThreadLimit(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~ThreadLimit() { omp_set_num_threads(before_); }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

struct Trained {
  std::vector<double> losses;
  std::vector<std::vector<float>> gradients, weights;  // of every part of every parameter, after the last step
  bool operator==(const Trained&) const = default;
};

// Three steps, prepared for one number of threads and run with another from the second step on.
Trained Run(const RunSpec& spec, int prepared, int later) {
  ThreadLimit threads(prepared);
  const StepProgram program = BuildStep(spec, true);
  CpuExecutor executor(program.trace, program.layout, CpuKernels());
  ModelState model(program, executor);
  model.Initialize();
  const int64_t tokens = program.tokens_per_step();
  for (int64_t i = 0; i < tokens; ++i) {
    executor.Data<int32_t>(program.tensors.ids)[i] = static_cast<int32_t>(i * 7919 % spec.vocab);
    executor.Data<int32_t>(program.tensors.targets)[i] = static_cast<int32_t>((i + 1) * 7919 % spec.vocab);
  }
  Trained outcome;
  for (int64_t step = 1; step <= 3; ++step) {
    if (step == 2) omp_set_num_threads(later);
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

void ExpectTheSameForAnyThreads(const std::string& family, const Numbers& numbers) {
  // Odd sizes, one head of keys and values for all queries (attention's backward pass is then one task), and rows and
  // sums long enough to be cut in every way.
  Json values = TinyModel(family);
  values.update({{"layers", 2}, {"hidden", 136}, {"ffn", 700}, {"batch_size", 1}, {"seq_length", 150}});
  if (family == "llama") values["kv_heads"] = 1;
  if (family == "gpt") values["positions"] = 150;
  numbers.AddTo(values);
  SCOPED_TRACE(values.dump());
  const RunSpec spec = SpecFrom(values);
  const Trained one = Run(spec, 1, 1);
  EXPECT_LT(one.losses.back(), one.losses.front());
  for (const int count : {2, 3, 4}) EXPECT_TRUE(Run(spec, count, count) == one) << count << " threads";
  EXPECT_TRUE(Run(spec, 2, 4) == one) << "2 threads, then 4";
  EXPECT_TRUE(Run(spec, 4, 1) == one) << "4 threads, then 1";
}

TEST(Threads, LossesGradientsAndWeightsAreTheSameToTheBit) {
  for (const std::string family : {"llama", "gpt"}) {
    ExpectTheSameForAnyThreads(family, {"fp32", "fp32"});
    ExpectTheSameForAnyThreads(family, {"bf16", "fp32"});
    ExpectTheSameForAnyThreads(family, {"mxfp8", "fp32"});
  }
}

}  // namespace
}  // namespace ridgeline::engine
