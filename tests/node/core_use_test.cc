// The users of the cores, from kernel files made for the test.
#include "node/core_use.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::node {
namespace {

class CoreUseTest : public ::testing::Test {
 protected:
  CoreUseTest() {
    WriteAll("proc/stat",
             "cpu  400 40 60 900 100 20 30 50 7 0\n"
             "cpu0 100 10 20 300 50 5 10 5 7 0\n"
             "cpu1 100 10 20 300 50 5 10 5 0 0\n"
             "cpu10 200 20 20 300 0 10 10 40 0 0\n"
             "intr 5\n");
    WriteAll("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n");
    WriteAll("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "4\n");
  }

  void WriteAll(const std::string& name, const std::string& text) {
    MakeDirs((dir_ / name).parent_path());
    WriteFile(dir_ / name, text);
  }

  TempDir dir_;
};

TEST_F(CoreUseTest, CountsTheGivenCoresAlone) {
  const std::vector<int> one = {1};
  EXPECT_EQ(ReadCoreUse(one, dir_.path()).busy_ticks, 150);
  EXPECT_EQ(ReadCoreUse(one, dir_.path()).ticks, 500);
  EXPECT_EQ(ReadCoreUse(one, dir_.path()).throttles, 4);
  const std::vector<int> two = {0, 1};
  EXPECT_EQ(ReadCoreUse(two, dir_.path()).busy_ticks, 300);
  EXPECT_EQ(ReadCoreUse(two, dir_.path()).throttles, 7);
  EXPECT_EQ(ReadCoreUse({}, dir_.path()).busy_ticks, 600) << "of all, steal included, guests not twice";
}

TEST_F(CoreUseTest, CountsWhatAQuotaHalts) {
  WriteAll("proc/self/cgroup", "0::/job/1\n");
  WriteAll("sys/fs/cgroup/job/1/cpu.stat", "usage_usec 9\nnr_periods 20\nnr_throttled 5\n");
  EXPECT_EQ(ReadCoreUse({}, dir_.path()).throttles, 5);
  WriteAll("proc/self/cgroup", "3:cpu,cpuacct:/v1\n0::/\n");
  WriteAll("sys/fs/cgroup/cpu/v1/cpu.stat", "nr_periods 20\nnr_throttled 6\n");
  EXPECT_EQ(ReadCoreUse({}, dir_.path()).throttles, 6);
}

TEST_F(CoreUseTest, AKernelThatCountsNothingIsNoFault) {
  const CoreUse nothing = ReadCoreUse({}, dir_ / "nowhere");
  EXPECT_EQ(nothing.ticks, 0);
  RunResult result;
  SetCoreUse(nothing, nothing, result);
  EXPECT_EQ(result.cores.busy_share, 0);
}

TEST_F(CoreUseTest, TimeThatIsNotOursCountsForOthers) {
  const int64_t second = ::sysconf(_SC_CLK_TCK);
  const CoreUse before{100, 1000, 5'000'000'000, 2};
  RunResult result;
  // Ten seconds of two cores, nine busy, six of them ours.
  SetCoreUse(before, {100 + 9 * second, 1000 + 20 * second, 11'000'000'000, 5}, result);
  EXPECT_DOUBLE_EQ(result.cores.busy_share, 0.45);
  EXPECT_DOUBLE_EQ(result.cores.others_share, 0.15);
  EXPECT_EQ(result.cores.throttles, 3);
  // Ticks are rounded, so our share may look like more than all.
  SetCoreUse(before, {100 + second, 1000 + 2 * second, 6'100'000'000, 2}, result);
  EXPECT_EQ(result.cores.others_share, 0);
}

TEST_F(CoreUseTest, ReportsOnlyDifferencesLargerThanRounding) {
  const int64_t tick_ns = 1'000'000'000 / ::sysconf(_SC_CLK_TCK);
  const CoreUse before{100, 1000, 0, 0};
  RunResult result;
  SetCoreUse(before, {100 + 40, 1000 + 60, 31 * tick_ns, 0}, result);
  EXPECT_EQ(result.cores.busy_share, 0) << "nine ticks of others may be none";
  SetCoreUse(before, {100 + 60, 1000 + 60, 30 * tick_ns, 0}, result);
  EXPECT_DOUBLE_EQ(result.cores.busy_share, 1);
  EXPECT_DOUBLE_EQ(result.cores.others_share, 0.5);
}

// As on a node whose cores several jobs share: what others have beside us takes nothing from us.
TEST_F(CoreUseTest, OnSharedCoresOthersCountOnlyWithinOurShare) {
  const int64_t second = ::sysconf(_SC_CLK_TCK);
  const CoreUse before{0, 0, 0, 0};
  RunResult result;
  // Ten seconds of four cores, one of which is ours: we used it, and others used two more.
  SetCoreUse(before, {30 * second, 40 * second, 10'000'000'000, 0}, result, 0.25);
  EXPECT_DOUBLE_EQ(result.cores.busy_share, 1);
  EXPECT_DOUBLE_EQ(result.cores.others_share, 0);
  // Others used three and a half.
  SetCoreUse(before, {40 * second, 40 * second, 5'000'000'000, 0}, result, 0.25);
  EXPECT_DOUBLE_EQ(result.cores.busy_share, 1);
  EXPECT_DOUBLE_EQ(result.cores.others_share, 0.5);
}

TEST_F(CoreUseTest, LooksOnlyWhereTheLoadSaysThatItMustLook) {
  FakeClock clock;
  WriteAll("proc/loadavg", "0.10 0.20 0.30 1/100 1\n");
  EXPECT_EQ(OthersShareNow(clock, dir_.path()), 0);
  EXPECT_EQ(clock.MonotonicNs(), FakeClock().MonotonicNs());
  WriteAll("proc/loadavg", "3.10 0.20 0.30 1/100 1\n");
  EXPECT_EQ(OthersShareNow(clock, dir_.path()), 0) << "the counters stand still";
  EXPECT_GT(clock.MonotonicNs(), FakeClock().MonotonicNs());
}

TEST(CoreUse, GrowsOnThisMachine) {
  const CoreUse before = ReadCoreUse({});
  volatile double sum = 0;
  for (int i = 0; i < 50'000'000; ++i) sum = sum + i;
  const CoreUse after = ReadCoreUse({});
  EXPECT_GT(after.ticks, before.ticks);
  EXPECT_GT(after.own_ns, before.own_ns);
}

}  // namespace
}  // namespace ridgeline::node
