// How much processor time this process may use, from kernel files made for the test. Its affinity is the real one.
#include "base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <string>

#include "base/files.h"
#include "base/machine.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

class Cores : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    MakeDirs((root_ / name).parent_path());
    WriteFile(root_ / name, text);
  }
  double Quota() { return CoresAllowed(root_.path()).quota; }

  TempDir root_;
};

TEST_F(Cores, AreThoseOfOurAffinity) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  const AllowedCores allowed = CoresAllowed(root_.path());
  EXPECT_EQ(allowed.ids.size(), static_cast<size_t>(CPU_COUNT(&set)));
  for (const int id : allowed.ids) EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(id), &set));
  EXPECT_EQ(allowed.quota, 0);
  EXPECT_EQ(allowed.count(), CPU_COUNT(&set));
}

TEST_F(Cores, AreASubsetIfTheMachineHasMore) {
  const auto ours = static_cast<int64_t>(CoresAllowed(root_.path()).ids.size());
  Write("sys/devices/system/cpu/online", "0-" + std::to_string(ours - 1) + "\n");
  EXPECT_FALSE(CoresAllowed(root_.path()).subset);
  Write("sys/devices/system/cpu/online", "0-" + std::to_string(ours - 1) + "," + std::to_string(ours + 3) + "\n");
  EXPECT_TRUE(CoresAllowed(root_.path()).subset);
}

TEST_F(Cores, TheTightestQuotaOfAllAboveUsHolds) {
  Write("proc/self/cgroup", "0::/pods/pod/container\n");
  Write("sys/fs/cgroup/pods/pod/container/cpu.max", "max 100000\n");
  EXPECT_EQ(Quota(), 0);
  Write("sys/fs/cgroup/pods/cpu.max", "800000 100000\n");
  EXPECT_EQ(Quota(), 8);
  Write("sys/fs/cgroup/pods/pod/cpu.max", "75000 50000\n");
  EXPECT_EQ(Quota(), 1.5);
}

TEST_F(Cores, AContainerSeesItsOwnAsTheTopmost) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(Quota(), 2);
  // A cgroup of version 1, with the host's path.
  Write("proc/self/cgroup", "7:memory:/kubepods/x\n4:cpu,cpuacct:/kubepods/x\n0::/\n");
  Write("sys/fs/cgroup/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 3);
  Write("sys/fs/cgroup/cpu/kubepods/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu/kubepods/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 3);
  Write("sys/fs/cgroup/cpu/kubepods/x/cpu.cfs_quota_us", "50000\n");
  Write("sys/fs/cgroup/cpu/kubepods/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 0.5);
}

TEST_F(Cores, AreAsManyAsAreNotHeldBack) {
  AllowedCores cores{{0, 1, 2, 3}, 0, false};
  EXPECT_EQ(cores.count(), 4);
  for (const auto& [quota, count] : {std::pair(0.5, 1), {1.0, 1}, {2.9, 2}, {4.0, 4}, {16.0, 4}}) {
    cores.quota = quota;
    EXPECT_EQ(cores.count(), count) << quota;
  }
}

TEST_F(Cores, TheFingerprintCountsCoresWithinTheQuota) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(MachineFacts(root_.path()).at("cores"), "1");
}

}  // namespace
}  // namespace ridgeline
