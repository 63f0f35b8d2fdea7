// The ranges that a step leaves for NVIDIA's tools, as those tools see them: this program is the tool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <string>
#include <vector>

#include "engine/device/cuda/executor.h"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/norm.h"
#include "tests/engine/device/cuda_machine.h"

namespace {

std::vector<std::string> seen;  // "(NAME" where a range begins, ")" where one ends

int Push(const char* name) {
  seen.push_back("(" + std::string(name));
  return 0;
}
int Pop() {
  seen.emplace_back(")");
  return 0;
}

int LookOn(NvtxGetExportTableFunc_t table_of) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(table_of(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(&Push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(&Pop);
  return 1;
}

// Set before the first range, when NVTX looks for a tool that is linked into its program.
const bool looks_on = (InitializeInjectionNvtx2_fnptr = LookOn) != nullptr;

}  // namespace

namespace ridgeline::engine {
namespace {

using ::testing::ElementsAre;

TEST(NvtxRanges, NameAStepAndEachOfItsOps) {
  ASSERT_TRUE(looks_on);
  cuda_machine::ResetMachine();
  Trace trace;
  const auto make = [&](int64_t rows, int64_t cols) {
    return trace.Persistent(DType::kF32, rows, cols, Category::kData);
  };
  RmsNorm(trace, make(2, 64), make(1, 64), make(2, 64), make(1, 2), 1e-5);
  CudaKernelTable kernels;
  AddNormCuda(kernels);
  const Layout layout = PlanLayout(trace);
  CudaExecutor executor(trace, layout, kernels, {});
  const auto ranges_of_a_step = [&] {
    seen.clear();
    executor.Step({});
    return seen;
  };
  const std::string op = "(" + std::string(trace.calls().front().op->name);
  EXPECT_THAT(ranges_of_a_step(), ElementsAre("(step", op, ")", ")"));
  EXPECT_THAT(ranges_of_a_step(), ElementsAre("(step", op, ")", ")")) << "while it is recorded";
  EXPECT_THAT(ranges_of_a_step(), ElementsAre("(step", ")")) << "replayed as one";
  CudaExecutor timed(trace, layout, kernels, {});
  timed.EnableTiming();
  seen.clear();
  timed.Step({});
  EXPECT_THAT(seen, ElementsAre("(step", op, ")", ")"));
}

}  // namespace
}  // namespace ridgeline::engine
