#include "run/gpus_here.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "run/gpus.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char* const kNamesOfCards[] = {"NVIDIA H200", "NVIDIA H200", "NVIDIA L40S"};
unsigned cards_here = 0;

const Nvml& TestNvml() {
  static const Nvml nvml = [] {
    Nvml all;
    all.nvmlInit_v2 = [] { return kNvmlSuccess; };
    all.nvmlShutdown = [] { return kNvmlSuccess; };
    all.nvmlDeviceGetCount_v2 = [](unsigned* count) {
      *count = cards_here;
      return kNvmlSuccess;
    };
    all.nvmlDeviceGetHandleByIndex_v2 = [](unsigned index, NvmlDevice* device) {
      *device = reinterpret_cast<NvmlDevice>(static_cast<size_t>(index) + 1);
      return kNvmlSuccess;
    };
    all.nvmlDeviceGetName = [](NvmlDevice device, char* name, unsigned size) {
      std::snprintf(name, size, "%s", kNamesOfCards[reinterpret_cast<size_t>(device) - 1]);
      return kNvmlSuccess;
    };
    all.nvmlErrorString = [](NvmlReturn) { return "trouble"; };
    return all;
  }();
  return nvml;
}

const Nvml& NoNvml() { throw Error(ErrorKind::kInfrastructure, "there is no libnvidia-ml.so.1", "load the driver"); }

std::vector<std::string> Seen(unsigned cards, const char* visible) {
  cards_here = cards;
  visible == nullptr ? ::unsetenv("CUDA_VISIBLE_DEVICES") : ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
  std::vector<std::string> names = FindGpusHere(TestNvml).names;
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  return names;
}

TEST(GpusHere, AreThoseThatTheProcessMayUse) {
  EXPECT_THAT(Seen(3, nullptr), ElementsAre("NVIDIA H200", "NVIDIA H200", "NVIDIA L40S"));
  EXPECT_THAT(Seen(3, "2,0"), ElementsAre("NVIDIA L40S", "NVIDIA H200"));
  EXPECT_THAT(Seen(3, "1,7,2"), ElementsAre("NVIDIA H200"));
  EXPECT_THAT(Seen(3, "GPU-8a1f"), ElementsAre("NVIDIA H200"));
  EXPECT_THAT(Seen(3, ""), IsEmpty());
  EXPECT_THAT(Seen(3, "-1"), IsEmpty());
  EXPECT_THAT(Seen(0, nullptr), IsEmpty());
}

TEST(GpusHere, OrWhyThereIsNone) {
  const GpusHere none = FindGpusHere(NoNvml);
  EXPECT_EQ(none.problem, "there is no libnvidia-ml.so.1");
  EXPECT_EQ(none.hint, "load the driver");
  cards_here = 0;
  EXPECT_THAT(FindGpusHere(TestNvml).problem, HasSubstr("sees no GPU"));
}

TEST(Gpus, AreOfAnotherFamilyByWhatAClusterCallsThem) {
  const Gpu& h100 = *FindGpu("h100-pcie");
  for (const char* same : {"h100", "H100", "nvidia_h100_80gb_hbm3", "gpu", "gh200", ""}) {
    EXPECT_FALSE(IsOfAnotherFamily(same, h100)) << same;
  }
  for (const char* other : {"h200", "a100", "nvidia_a100-sxm4-80gb", "rtx_4090", "gb200"}) {
    EXPECT_TRUE(IsOfAnotherFamily(other, h100)) << other;
  }
}

}  // namespace
}  // namespace ridgeline
