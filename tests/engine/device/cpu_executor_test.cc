#include "engine/device/cpu/executor.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/error.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/optimizer.h"
#include "engine/train/cpu_kernels.h"

namespace ridgeline::engine {
namespace {

struct NoOperands {
  struct {
    Tensor none;
  } reads;
};
const Op<NoOperands> kUnknown{OpDef::Pass("unknown", BesideBudget("a test's"))};

TEST(CpuExecutor, ReadsWhatWasWrittenByTheElement) {
  Trace trace;
  const Tensor x = trace.Persistent(DType::kF32, 2, 3, Category::kData);
  const Layout layout = PlanLayout(trace);
  CpuExecutor executor(trace, layout, CpuKernels());
  executor.Write<float>(x, 0, std::array{0.F, 1.F, 2.F, 3.F, 4.F, 5.F});
  executor.Write<float>(x.Rows(1, 1), 2, std::array{50.F});
  EXPECT_EQ(executor.Read<float>(x, 0, 6), (std::vector{0.F, 1.F, 2.F, 3.F, 4.F, 50.F}));
  EXPECT_EQ(executor.Element<float>(x.Cols(1, 1)), 1.F);
}

TEST(CpuExecutor, GivesEveryStepItsInputsInATensor) {
  Trace trace;
  const Tensor x = trace.Persistent(DType::kF32, 1, 64, Category::kData);
  FillUniform(trace, x, {.id = 3});
  const Layout layout = PlanLayout(trace);
  CpuExecutor executor(trace, layout, CpuKernels());
  const auto drawn = [&](int64_t step, uint64_t seed) {
    executor.Step({.step = step, .seed = seed});
    return executor.Read<float>(x, 0, 64);
  };
  const std::vector<float> first = drawn(1, 9);
  EXPECT_NE(drawn(2, 9), first);
  EXPECT_NE(drawn(1, 8), first);
  EXPECT_EQ(drawn(1, 9), first);
}

TEST(CpuExecutor, TimesEveryCallWhereAsked) {
  Trace trace;
  const Tensor x = trace.Persistent(DType::kF32, 100, 1000, Category::kData);
  Fill(trace, x, 1);
  Fill(trace, x, 2);
  const Layout layout = PlanLayout(trace);
  CpuExecutor executor(trace, layout, CpuKernels());
  EXPECT_TRUE(executor.call_ns().empty());
  executor.EnableTiming();
  executor.Step({});
  ASSERT_EQ(executor.call_ns().size(), 2U);
  for (const int64_t ns : executor.call_ns()) EXPECT_GT(ns, 0);
}

TEST(CpuExecutor, RefusesAnOpThatItHasNoKernelFor) {
  Trace trace;
  trace.Call(kUnknown, {{trace.Inputs()}});
  const Layout layout = PlanLayout(trace);
  try {
    const CpuExecutor executor(trace, layout, CpuKernels());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "the op unknown has no CPU kernel");
  }
}

TEST(CpuExecutor, MultipliesFp32AndBf16ItselfAndEmulatesTheRest) {
  Trace trace;
  trace.Inputs();
  const Layout layout = PlanLayout(trace);
  const CpuExecutor executor(trace, layout, CpuKernels());
  EXPECT_TRUE(executor.Multiplies(MathFormat::kF32));
  EXPECT_TRUE(executor.Multiplies(MathFormat::kBF16));
  EXPECT_FALSE(executor.Multiplies(MathFormat::kTF32));
  EXPECT_FALSE(executor.Multiplies(MathFormat::kF16));
  EXPECT_FALSE(executor.Multiplies(MathFormat::kFp8));
  EXPECT_FALSE(executor.Multiplies(MathFormat::kFp4));
}

}  // namespace
}  // namespace ridgeline::engine
