#include "base/machine_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

void Write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

class Memory : public testing::Test {
 protected:
  Memory() { Write(root_ / "proc/meminfo", "MemTotal:  9000 kB\nMemFree:  1 kB\nMemAvailable:    4000 kB\n"); }
  TempDir root_;
};

TEST_F(Memory, IsMemAvailableWithoutCgroups) { EXPECT_EQ(AvailableMemoryBytes(root_.path()), 4000 * 1024); }

TEST_F(Memory, IsLimitedByEveryCgroupAboveUs) {
  const auto cgroups = root_ / "sys/fs/cgroup";
  Write(root_ / "proc/self/cgroup", "0::/slice/job\n");
  Write(cgroups / "slice/job/memory.max", "max\n");
  Write(cgroups / "slice/job/memory.current", "500\n");
  EXPECT_EQ(AvailableMemoryBytes(root_.path()), 4000 * 1024);
  Write(cgroups / "slice/memory.max", "3000000\n");
  Write(cgroups / "slice/memory.current", "1000000\n");
  EXPECT_EQ(AvailableMemoryBytes(root_.path()), 2'000'000);
  Write(cgroups / "slice/memory.stat", "anon 600000\nfile 400000\ninactive_file 250000\nactive_file 150000\nslab 9\n");
  EXPECT_EQ(AvailableMemoryBytes(root_.path()), 2'400'000);
  Write(cgroups / "slice/job/memory.max", "1500\n");
  EXPECT_EQ(AvailableMemoryBytes(root_.path()), 1000);
  Write(cgroups / "slice/job/memory.current", "1600\n");
  EXPECT_EQ(AvailableMemoryBytes(root_.path()), 0);
}

TEST_F(Memory, UnderstandsTheFirstVersionOfCgroups) {
  const auto cgroups = root_ / "sys/fs/cgroup/memory";
  Write(root_ / "proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/a\n0::/\n");
  Write(cgroups / "memory.limit_in_bytes", "9223372036854771712\n");
  Write(cgroups / "memory.usage_in_bytes", "100\n");
  EXPECT_EQ(AvailableMemoryBytes(root_.path()), 4000 * 1024);
  Write(cgroups / "a/memory.limit_in_bytes", "70000\n");
  Write(cgroups / "a/memory.usage_in_bytes", "20000\n");
  EXPECT_EQ(AvailableMemoryBytes(root_.path()), 50'000);
}

TEST(MemoryOfNothing, IsUnlimited) {
  const TempDir empty;
  EXPECT_EQ(AvailableMemoryBytes(empty.path()), std::numeric_limits<int64_t>::max());
}

TEST(MemoryHere, IsThere) {
  EXPECT_GT(AvailableMemoryBytes(), 1'000'000);
  EXPECT_LT(AvailableMemoryBytes(), std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace ridgeline
