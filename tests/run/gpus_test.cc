#include "run/gpus.h"

#include <gtest/gtest.h>

#include <string>

#include "run/fields.h"

namespace ridgeline {
namespace {

TEST(Gpus, AreTheChoicesOfTheField) {
  std::string choices = "none";
  for (const Gpu& gpu : Gpus()) choices += "|" + std::string(gpu.name);
  EXPECT_EQ(FindField("gpu")->choices, choices);
  for (const Gpu& gpu : Gpus()) EXPECT_EQ(FindGpu(gpu.name), &gpu);
  EXPECT_EQ(FindGpu("H100"), nullptr);
}

// What drivers call them.
TEST(Gpus, AreKnownByTheDriversName) {
  EXPECT_TRUE(IsProduct("NVIDIA H100 80GB HBM3", *FindGpu("h100")));
  EXPECT_TRUE(IsProduct("NVIDIA A100-SXM4-80GB", *FindGpu("a100")));
  EXPECT_TRUE(IsProduct("NVIDIA GeForce RTX 4090", *FindGpu("rtx-4090")));
  EXPECT_TRUE(IsProduct("NVIDIA GB200", *FindGpu("gb200")));
  EXPECT_FALSE(IsProduct("NVIDIA GB200", *FindGpu("b200")));
  EXPECT_TRUE(IsProduct("NVIDIA B300 SXM6 AC", *FindGpu("b300")));
  EXPECT_FALSE(IsProduct("NVIDIA GB300", *FindGpu("b300")));
  EXPECT_FALSE(IsProduct("NVIDIA H200", *FindGpu("h100")));
  EXPECT_FALSE(IsProduct("NVIDIA A1000", *FindGpu("a100")));
  EXPECT_FALSE(IsProduct("", *FindGpu("a100")));
}

}  // namespace
}  // namespace ridgeline
