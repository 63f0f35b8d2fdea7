#include "engine/device/cuda/fastest.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "base/error.h"
#include "cuda_on_cpu/machine.h"
#include "engine/device/cuda/runtime.h"

namespace ridgeline::engine {
namespace {

// Each way lists the milliseconds of its runs in turn; the last value repeats. An empty list: the way cannot run. The
// times are a thousand times what the emulated machine itself takes.
std::optional<size_t> FastestOf(const std::vector<std::vector<double>>& ways, StepLoad* load = nullptr) {
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
  return Fastest(ways.size(), queue, stream.get(), load);
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

// Under a step's load, the middle of a way's times counts, not the least.
TEST(Fastest, IsTheOneWithTheLeastMiddleTimeUnderLoad) {
  int taken = 0;
  const auto under_load = [&](const std::vector<std::vector<double>>& ways) {
    StepLoad load = {0, [&] { ++taken; }};
    return FastestOf(ways, &load);
  };
  // The first run of each is not timed.
  const std::vector<double> often_fast = {0, 90'000, 10'000, 10'000, 10'000, 90'000};
  const std::vector<double> once_fast = {0, 20'000, 1'000, 20'000, 20'000, 20'000};
  EXPECT_EQ(under_load({once_fast, often_fast}), 1U);
  EXPECT_EQ(FastestOf({once_fast, often_fast}), 0U) << "both rules choose the same, so this test shows nothing";
  EXPECT_EQ(taken, 2 * 5) << "other data is in the caches before each timed run";
  EXPECT_EQ(under_load({{}, {10'000}, {9'900}}), 1U);
  EXPECT_EQ(under_load({{}, {}}), std::nullopt);
  EXPECT_EQ(under_load({}), std::nullopt);
}

TEST(Fastest, HasTheDeviceBusyBeforeItTimesAnythingOnce) {
  int runs = 0;
  StepLoad load = {0.02, [] {}};
  const auto queue = [&](size_t) { return ++runs > 0; };
  const auto began = std::chrono::steady_clock::now();
  cuda_on_cpu::ResetMachine();
  EXPECT_EQ(Fastest(1, queue, nullptr, &load), 0U);
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(20));
  EXPECT_GT(runs, 7);
  EXPECT_EQ(load.seconds, 0);
  runs = 0;
  EXPECT_EQ(Fastest(1, queue, nullptr, &load), 0U);
  EXPECT_EQ(runs, 1 + 5);
}

TEST(Fastest, GivesEverythingBackWhereTheRuntimeFails) {
  for (const bool loaded : {false, true}) {
    int64_t call = 0;
    for (bool failed = true; failed;) {
      failed = false;
      StepLoad load = {0, [] {}};
      cuda_on_cpu::ResetMachine();
      cuda_on_cpu::FailCall(++call, cudaErrorUnknown);
      try {
        Fastest(
            2, [](size_t) { return true; }, nullptr, loaded ? &load : nullptr);
      } catch (const Error& error) {
        failed = true;
        EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
      }
      EXPECT_EQ(cuda_on_cpu::OpenHandles(), 0) << call;
    }
    EXPECT_GT(call, 25);
  }
}

}  // namespace
}  // namespace ridgeline::engine
