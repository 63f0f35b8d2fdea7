// Properties of the optimizer that only CUDA has: updates that run together have the bits of separate updates, in fewer
// launches. optimizer_test.cc has the properties of updates on every device.
#ifdef RIDGELINE_CUDA_TESTS
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "engine/device/cuda/executor.h"
#include "engine/device/layout.h"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/optimizer.h"
#include "tests/engine/device/cuda_machine.h"

namespace ridgeline::engine {
namespace {

class CudaOptimizer : public testing::TestWithParam<uint64_t> {
 protected:
  struct Ended {
    std::vector<std::vector<std::byte>> storages;
    int64_t grids = 0;
  };
  // Takes a step from random bytes in all persistent storages, on a machine with fewer blocks than work.
  static Ended After(const Trace& trace, const CudaKernelTable& table) {
    cuda_machine::ResetMachine({.multiprocessors = 1, .seed = GetParam()});
    const Layout layout = PlanLayout(trace);
    CudaExecutor executor(trace, layout, table);
    const auto whole = [&](size_t s) {
      return Tensor{static_cast<StorageId>(s), DType::kU8, 1, trace.storages()[s].bytes, trace.storages()[s].bytes, 0};
    };
    std::mt19937 random(1);
    for (size_t s = 0; s < trace.storages().size(); ++s) {
      std::vector<std::byte> bytes(static_cast<size_t>(trace.storages()[s].bytes));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      if (trace.storages()[s].persistent) executor.Write(whole(s), 0, std::span<const std::byte>(bytes));
    }
    executor.Step({.step = 3, .learning_rate = 0.25});
    Ended ended;
    for (size_t s = 0; s < trace.storages().size(); ++s) {
      if (trace.storages()[s].persistent) {
        ended.storages.push_back(executor.Read<std::byte>(whole(s), 0, trace.storages()[s].bytes));
      }
    }
    ended.grids = cuda_machine::GridsRun();
    return ended;
  }
  // Expects the same result together and in turn, and that together saves this many launches.
  static void ExpectSaved(const Trace& trace, int64_t launches) {
    CudaKernelTable table;
    AddOptimizerCuda(table);
    const Ended together = After(trace, table);
    for (auto& [op, kernel] : table) kernel.run_together = nullptr;
    const Ended in_turn = After(trace, table);
    EXPECT_EQ(in_turn.storages, together.storages);
    if (kEmulatedMachine) {
      EXPECT_EQ(in_turn.grids - together.grids, launches);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, CudaOptimizer, testing::Values(0, 1, 2));

// A parameter of `count` weights, with its state.
struct Weights {
  Tensor work, master, m, v, grad;

  Weights(Trace& trace, int64_t count, DType kind) {
    const auto make = [&](DType dtype) { return trace.Persistent(dtype, 1, count, Category::kOptimizer); };
    work = make(DType::kBF16);
    master = make(kind);
    m = make(DType::kF32);
    v = make(DType::kF32);
    grad = make(DType::kBF16);
  }
  void Update(Trace& trace, const AdamAttrs& attrs = {}) const { Adam(trace, work, master, m, v, grad, {}, attrs); }
};

TEST_P(CudaOptimizer, UpdatesManyParametersInFewLaunches) {
  Trace trace;
  // Parameters with no, one and several chunks, with and without every possible remainder; more of them than one launch
  // takes.
  for (int64_t i = 0; i < 70; ++i) {
    Weights(trace, i % 7 == 0 ? 2048 * (i / 7) + i % 3 : i, DType::kI16).Update(trace);
  }
  Weights(trace, 100, DType::kI16).Update(trace, {.weight_decay = 0.1});
  Weights(trace, 100, DType::kF32).Update(trace, {.weight_decay = 0.1});
  // 64 and 6, another decay, another kind of master: four launches instead of 71, as one of the parameters has no
  // weights.
  ExpectSaved(trace, 67);
}

TEST_P(CudaOptimizer, ReadersOfUpdatedMemoryRunAfterTheUpdate) {
  Trace trace;
  const Weights a(trace, 3000, DType::kI16);
  const Weights b(trace, 3000, DType::kI16);
  a.Update(trace);
  b.Update(trace);
  a.Update(trace);  // a second update
  Weights reader(trace, 3000, DType::kI16);
  reader.grad = a.m;
  reader.Update(trace);
  ExpectSaved(trace, 1);
}

// A temporary that begins where another one ended may lie in its bytes.
TEST_P(CudaOptimizer, UsersOfReusedMemoryRunAfterItsLastUser) {
  Trace trace;
  Weights a(trace, 3000, DType::kF32);
  Weights b(trace, 3000, DType::kF32);
  const Weights c(trace, 3000, DType::kF32);
  a.work = trace.Temporary(DType::kBF16, 1, 3000, Category::kWorkspace);
  a.Update(trace);
  b.work = trace.Temporary(DType::kBF16, 1, 3000, Category::kWorkspace);
  b.Update(trace);
  const Layout layout = PlanLayout(trace);
  ASSERT_EQ(layout.offsets[static_cast<size_t>(a.work.storage)], layout.offsets[static_cast<size_t>(b.work.storage)]);
  c.Update(trace);
  ExpectSaved(trace, 1);  // b and c together
}

}  // namespace
}  // namespace ridgeline::engine
#endif
