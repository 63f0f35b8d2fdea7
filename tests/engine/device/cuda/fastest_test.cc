#include "engine/device/cuda/fastest.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "base/error.h"
#include "cuda_on_cpu/machine.h"
#include "engine/device/cuda/runtime.h"

namespace ridgeline {
namespace {

// Each way lists the milliseconds of its runs in turn; the last value repeats. An empty list: the way cannot run. The
// times are a thousand times what the emulated machine itself takes.
std::optional<size_t> FastestOf(const std::vector<std::vector<double>>& ways) {
  cuda_on_cpu::ResetMachine();
  const CudaStream stream = NewCudaStream();
  std::vector<size_t> runs(ways.size());
  const auto queue = [&](size_t way) {
    if (ways[way].empty()) return false;
    const double ms = ways[way][std::min(runs[way]++, ways[way].size() - 1)];
    CheckCuda(cuda_on_cpu::Enqueue(stream.get(),
                                   [ms] {
                                     cuda_on_cpu::PassTime(std::chrono::duration<double, std::milli>(ms));
                                     return cudaSuccess;
                                   }),
              "cuda_on_cpu::Enqueue");
    return true;
  };
  return Fastest(ways.size(), queue, stream.get());
}

TEST(Fastest, IsTheOneThatTakesTheLeastTime) {
  EXPECT_EQ(FastestOf({{30'000}, {10'000}, {20'000}}), 1U);
  EXPECT_EQ(FastestOf({{30'000}, {20'000}, {10'000}}), 2U);
  EXPECT_EQ(FastestOf({{1}}), 0U);
}

TEST(Fastest, IsTheFirstOfThoseThatAreEquallyFast) {
  EXPECT_EQ(FastestOf({{10'000}, {10'000}, {10'000}}), 0U);
  EXPECT_EQ(FastestOf({{20'000}, {10'100}, {10'000}}), 1U);
  EXPECT_EQ(FastestOf({{10'300}, {10'000}, {10'000}}), 1U);
}

TEST(Fastest, DoesNotCountTheFirstRunNorWhatDisturbsOthers) {
  EXPECT_EQ(FastestOf({{20'000}, {90'000, 10'000}}), 1U);
  EXPECT_EQ(FastestOf({{20'000}, {10'000, 50'000, 90'000, 10'000, 50'000}}), 1U);
}

TEST(Fastest, PassesOverWhatCannotBeRun) {
  EXPECT_EQ(FastestOf({{}, {20'000}, {}, {10'000}}), 3U);
  EXPECT_EQ(FastestOf({{}, {}}), std::nullopt);
  EXPECT_EQ(FastestOf({}), std::nullopt);
}

TEST(Fastest, GivesEverythingBackWhereTheRuntimeFails) {
  int64_t call = 0;
  for (bool failed = true; failed;) {
    failed = false;
    cuda_on_cpu::ResetMachine();
    cuda_on_cpu::FailCall(++call, cudaErrorUnknown);
    try {
      Fastest(
          2, [](size_t) { return true; }, nullptr);
    } catch (const Error& error) {
      failed = true;
      EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
    }
    EXPECT_EQ(cuda_on_cpu::OpenHandles(), 0) << call;
  }
  EXPECT_GT(call, 25);
}

}  // namespace
}  // namespace ridgeline
