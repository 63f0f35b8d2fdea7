#include "base/machine.h"

#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

TEST(MachineFacts, AreReadFromTheKernel) {
  const TempDir root;
  MakeDirs(root / "proc");
  WriteFileAtomic(root / "proc/cpuinfo",
                  "processor\t: 0\nmodel name\t: Example CPU\nflags\t\t: fpu fma sse avx2\n\nprocessor\t: 1\n");
  WriteFileAtomic(root / "proc/meminfo", "MemTotal:       24689012 kB\nMemFree:  1 kB\n");
  const auto facts = MachineFacts(root.path());
  EXPECT_EQ(facts.at("cpu"), "Example CPU");
  EXPECT_EQ(facts.at("cpu_flags"), "avx2 fma");
  EXPECT_EQ(facts.at("memory"), "24 GiB");
  EXPECT_GE(std::stoi(facts.at("cores")), 1);
}

TEST(MachineFacts, AreEmptyIfNothingCanBeRead) {
  const TempDir root;
  const auto facts = MachineFacts(root.path());
  EXPECT_EQ(facts.at("cpu") + facts.at("cpu_flags") + facts.at("memory"), "");
}

}  // namespace
}  // namespace ridgeline
