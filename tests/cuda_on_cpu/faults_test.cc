// The emulated machine detects and names a kernel's faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "cuda_on_cpu/machine.h"
#include "cuda_on_cpu/numbers.h"

namespace cuda_on_cpu {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddress = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kAddress = true;
#else
constexpr bool kAddress = false;
#endif
#else
constexpr bool kAddress = false;
#endif

using testing::HasSubstr;

std::vector<float> After(void (*kernel)(float*), uint64_t seed = 0) {
  ResetMachine({.seed = seed});
  const Numbers x;
  kernel(x.data());
  return x.Read();
}

TEST(Kernels, TheRightOnesGiveOneResultInEveryOrder) {
  std::vector<float> reversed = Counting();
  std::reverse(reversed.begin(), reversed.end());
  for (uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(After(Reverse, seed), reversed);
    EXPECT_EQ(After(SumOfWarps, seed)[0], kFaultyCount * (kFaultyCount - 1) / 2);
  }
}

TEST(Kernels, ARaceGivesAnotherResultInAnotherOrder) {
  std::vector<float> reversed = Counting();
  std::reverse(reversed.begin(), reversed.end());
  for (uint64_t seed = 0; seed < 4; ++seed) EXPECT_NE(After(ReverseWithoutBarrier, seed), reversed);
  EXPECT_NE(After(ReverseWithoutBarrier, 1), After(ReverseWithoutBarrier, 2));
}

TEST(Kernels, SharedMemoryThatNothingWroteIsNan) {
  for (const float value : After(ReadUnwrittenShared)) EXPECT_TRUE(std::isnan(value));
}

std::string Failure(void (*kernel)(float*)) {
  ResetMachine();
  const Numbers x;
  EXPECT_THROW(kernel(x.data()), ridgeline::Error);
  return LastFailure();
}

TEST(Kernels, ABarrierThatOneHalfReachesIsNamedAndTheDeviceLost) {
  EXPECT_THAT(Failure(BarrierOfOneHalf), HasSubstr("block (0,0,0) stands still: 32 threads wait in __syncthreads at "
                                                   "faulty.cu:"));
  EXPECT_THAT(LastFailure(), HasSubstr("; 32 have returned"));
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure) << "it stays";
  ResetMachine();
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(Kernels, TwoBlocksThatWriteToOnePlaceAreSeen) {
  ResetMachine({.seed = 1});
  {
    const Numbers x;
    EXPECT_THROW(RaiseWithoutAtomic(x.data()), ridgeline::Error);
  }
  EXPECT_THAT(LastFailure(), HasSubstr("two blocks write to one place, byte "));
  ResetMachine({.seed = 1});
  const Numbers x;
  RaiseByAtomic(x.data());
  EXPECT_EQ(LastFailure(), "");
}

TEST(Kernels, NamesThreadsThatCannotMeetAtABarrier) {
  EXPECT_THAT(Failure(BarriersInTwoPlaces), HasSubstr("for others that wait in __syncthreads at faulty.cu:"));
  EXPECT_THAT(Failure(ShuffleWithLanesThatReturned), HasSubstr("32 threads wait in __shfl_xor_sync at faulty.cu:"));
  EXPECT_THAT(Failure(ShuffleByLanesOutsideOfTheMask), HasSubstr("the mask does not name the calling lane"));
  EXPECT_THAT(Failure(DifferentIntrinsicsOfOneMask), HasSubstr("while lanes of its mask are in __"));
}

TEST(KernelsDeathTest, TheSanitizersSeeWhatLiesBeyond) {
  if (!kAddress) GTEST_SKIP() << "this build is not sanitized";
  EXPECT_DEATH(After(WriteBeyondShared), "global-buffer-overflow|index 64 out of bounds");
  EXPECT_DEATH(After(WriteBeyondDynamicShared), "use-after-poison");
  EXPECT_DEATH(After(WriteBeyondMemory), "use-after-poison");
}
TEST(KernelsDeathTest, TheSanitizersSeeWhatIsMisaligned) {
  if (!kAddress) GTEST_SKIP() << "this build is not sanitized";
  EXPECT_DEATH(After(ReadMisaligned), "misaligned|assumption of 16 byte alignment");
}

}  // namespace
}  // namespace cuda_on_cpu
