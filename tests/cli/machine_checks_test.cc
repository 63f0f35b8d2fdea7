#include "cli/machine_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A machine that consists of files.
class Machine {
 public:
  Machine() {
    Write("proc/cpuinfo", "processor : 0\nmodel name\t: Test CPU\nflags\t\t: fpu avx2 avx512f avx512_bf16 amx_bf16\n");
    Write("proc/meminfo", "MemTotal:       32000000 kB\nMemAvailable:   16000000 kB\n");
    Write("proc/self/cgroup", "0::/a/b\n");
  }
  void Write(const std::string& file, const std::string& text) {
    MakeDirs((root / file).parent_path());
    std::ofstream(root / file) << text;
  }
  Check Get(const std::string& name) {
    for (const Check& check : MachineChecks(root.path())) {
      if (check.name == name) return check;
    }
    return {CheckState::kFail, "none", "", ""};
  }
  TempDir root;
};

TEST(MachineChecks, NamesTheProcessorAndWhatItCan) {
  Machine machine;
  const Check check = machine.Get("processor");
  EXPECT_EQ(check.state, CheckState::kOk);
  EXPECT_THAT(check.detail, HasSubstr("Test CPU"));
  EXPECT_THAT(check.detail, HasSubstr("amx_bf16"));
}

TEST(MachineChecks, WarnsWithoutBf16Instructions) {
  Machine machine;
  machine.Write("proc/cpuinfo", "model name : Old\nflags : fpu avx2 avx512_bf16x\n");
  EXPECT_EQ(machine.Get("processor").state, CheckState::kWarn);
  EXPECT_THAT(machine.Get("processor").detail, Not(HasSubstr("avx512_bf16")));
}

TEST(MachineChecks, AQuotaOfCoresIsAWarning) {
  Machine machine;
  machine.Write("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(machine.Get("cores").state, CheckState::kWarn);
  EXPECT_THAT(machine.Get("cores").detail, HasSubstr("a cgroup allows 0.5"));
  machine.Write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(machine.Get("cores").state, CheckState::kOk);
}

TEST(MachineChecks, TheTightestMemoryLimitAboveUsCounts) {
  Machine machine;
  EXPECT_EQ(machine.Get("memory").state, CheckState::kOk);
  machine.Write("sys/fs/cgroup/a/b/memory.max", "8000000000\n");
  EXPECT_THAT(machine.Get("memory").detail, HasSubstr("8.00 GB"));
  EXPECT_EQ(machine.Get("memory").state, CheckState::kOk);
  machine.Write("sys/fs/cgroup/a/memory.max", "2000000000\n");
  EXPECT_THAT(machine.Get("memory").detail, HasSubstr("2.00 GB"));
  EXPECT_EQ(machine.Get("memory").state, CheckState::kWarn);
}

TEST(MachineChecks, SayWhatCannotBeRead) {
  const TempDir nothing;
  for (const Check& check : MachineChecks(nothing.path())) {
    if (check.name != "memory") continue;
    EXPECT_EQ(check.state, CheckState::kFail);
  }
}

TEST(MachineChecks, AnotherGovernorIsAWarning) {
  Machine machine;
  EXPECT_EQ(machine.Get("frequency").name, "none");
  machine.Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  EXPECT_EQ(machine.Get("frequency").state, CheckState::kWarn);
  machine.Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  EXPECT_EQ(machine.Get("frequency").state, CheckState::kOk);
}

TEST(DiskCheck, SaysWhatIsFreeAndWhatIsNotThere) {
  const TempDir dir;
  EXPECT_THAT(DiskCheck(dir.path()).detail, HasSubstr("free in"));
  EXPECT_EQ(DiskCheck(dir / "nowhere").state, CheckState::kFail);
}

}  // namespace
}  // namespace ridgeline::cli
