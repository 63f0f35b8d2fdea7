// Whole steps, whose kernels are checked against what their calls declare.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "engine/ops/loss.h"
#include "engine/step/program.h"
#include "engine/train/cpu_kernels.h"
#include "tests/engine/ops/op_runner.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

// Fills every persistent storage with harmless values: indices into any vocabulary, codes that are numbers.
void FillPersistent(OpRunner& runner) {
  const auto& storages = runner.trace.storages();
  std::vector<bool> filled(storages.size());
  for (const OpCall& call : runner.trace.calls()) {
    for (const Tensor& tensor : call.tensors()) {
      const auto id = static_cast<size_t>(std::max(tensor.storage, 0));
      if (!tensor.defined() || !storages[id].persistent || filled[id]) continue;
      filled[id] = true;
      const auto count = storages[id].bytes / SizeOf(tensor.dtype);
      std::vector<float> values = NormalFloats(count, static_cast<uint32_t>(id), 0.1F);
      if (tensor.dtype == DType::kI32 || tensor.dtype == DType::kI16 || tensor.dtype == DType::kU8) {
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 61);
      }
      runner.Fill(tensor.storage, tensor.dtype, std::move(values));
    }
  }
}

// The names of the ops that ran.
std::set<std::string> RunHeldToWhatItDeclares(const Json& values) {
  SCOPED_TRACE(values.dump());
  OpRunner runner;
  runner.trace = BuildStep(SpecFrom(values)).trace;
  FillPersistent(runner);
  runner.Run(CpuKernels(), {.step = 3, .learning_rate = 0.01, .seed = 5});
  std::set<std::string> names;
  for (const OpCall& call : runner.trace.calls()) names.insert(call.op->name);
  return names;
}

TEST(Hazards, NoKernelOfAStepTouchesWhatItsCallDoesNotDeclare) {
  std::set<std::string> ran;
  for (const auto& [family, numbers] : kFamiliesInNumbers) {
    for (const char* scaling : {"", "delayed"}) {
      Json values = TinyModel(family);
      values.update({{"layers", 2}, {"checkpointing", "selective"}, {"grad_clip", 1.0}});
      numbers.AddTo(values);
      if (family == "gpt") values.update({{"dropout", 0.1}, {"grad_accumulation", 2}});
      if (*scaling != 0) {
        if (numbers.precision != "fp8") continue;
        values["scaling"] = scaling;
      }
      ran.merge(RunHeldToWhatItDeclares(values));
      if (HasFatalFailure()) return;
    }
  }
  for (const auto& [op, kernel] : CpuKernels()) {
    if (MovesBetweenRanks(op->kind) || op->kind == OpKind::kLanding) continue;  // tests/engine/comm checks these
    if (op == &kLossStatistics || op == &kCrossEntropyOfPart) continue;         // of several ranks: the ops' tests do
    EXPECT_TRUE(ran.contains(op->name)) << op->name << " is in none of these steps";
  }
}

TEST(Ops, HaveWholeRows) {
  std::set<std::string> names;
  for (const auto& [op, kernel] : CpuKernels()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name << " is the name of two ops";
    EXPECT_NE(op->budget.part.empty(), op->budget.reason.empty()) << op->name;
    EXPECT_EQ(op->dims != nullptr, Multiplies(op->kind)) << op->name;
    EXPECT_EQ(op->collective != Collective::kNone, MovesBetweenRanks(op->kind)) << op->name;
    EXPECT_EQ(op->variants.of == nullptr, op->variants.name == nullptr) << op->name;
    EXPECT_NE(op->attrs_type, nullptr) << op->name;
  }
}

}  // namespace
}  // namespace ridgeline::engine
