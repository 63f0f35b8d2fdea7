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

TEST(Gpus, AreKnownByTheDriversVeryName) {
  for (const Gpu& gpu : Gpus()) EXPECT_EQ(FindGpuOfDriver(gpu.driver_name), &gpu) << "and no other is called so";
  EXPECT_EQ(FindGpuOfDriver("NVIDIA H100 80GB HBM3")->name, "h100");
  EXPECT_EQ(FindGpuOfDriver("NVIDIA A100-SXM4-80GB")->name, "a100");
  EXPECT_EQ(FindGpuOfDriver("NVIDIA H100 NVL")->name, "h100-nvl");
  for (const char* other : {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA A100-PCIE-40GB", "NVIDIA GeForce RTX 4090 D",
                            "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA A1000", "NVIDIA H800", "H100", ""}) {
    EXPECT_EQ(FindGpuOfDriver(other), nullptr) << other;
  }
}

TEST(Gpus, NamesAnotherGpu) {
  EXPECT_EQ(WhyNoGpu("NVIDIA H200 MIG 1g.18gb"),
            "'NVIDIA H200 MIG 1g.18gb' is a slice (MIG) of a GPU, with a part of its memory and multiprocessors");
  EXPECT_EQ(
      WhyNoGpu("NVIDIA A100-PCIE-40GB"),
      "'NVIDIA A100-PCIE-40GB' is another part than a100 ('NVIDIA A100-SXM4-80GB'), a100-40gb "
      "('NVIDIA A100-SXM4-40GB'), a100-pcie ('NVIDIA A100 80GB PCIe'): it may have other memory, power and links");
  EXPECT_EQ(WhyNoGpu("NVIDIA GeForce RTX 4090 Laptop GPU"),
            "'NVIDIA GeForce RTX 4090 Laptop GPU' is another part than rtx-4090 ('NVIDIA GeForce RTX 4090'): it may "
            "have other memory, power and links");
  EXPECT_EQ(WhyNoGpu("NVIDIA TITAN"), "no gpu is called 'NVIDIA TITAN'");
}

TEST(Gpus, HaveLessToUseThanInAll) {
  for (const Gpu& gpu : Gpus()) {
    EXPECT_LT(gpu.usable_bytes, gpu.total_bytes) << gpu.name;
    EXPECT_GT(static_cast<double>(gpu.usable_bytes), 0.95 * static_cast<double>(gpu.total_bytes)) << gpu.name;
  }
}

}  // namespace
}  // namespace ridgeline
