#include "plan/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "launch/launcher.h"
#include "predict/memory_forecast.h"
#include "run/gpus.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/launch.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::plan {
namespace {

constexpr int64_t kGigabyte = 1'000'000'000;

SlabLimit LimitOf(const std::string& launch, const NodeMemory& node = {}, const std::string& defaults = "") {
  sweep::Sweep sweep = sweep::ParseSweep(
      "name: test\ndefaults: {model: llama-10m" + defaults + "}\nlaunch: {" + launch + "}\n", "s.yaml");
  sweep.launch.describe = launch::AskLaunchers(RIDGELINE_PLUGIN_DIR);
  const Point point = sweep::Expand(sweep).front();
  return SlabLimitOf(point.spec, sweep::LaunchOf(sweep, point), node);
}

TEST(SlabLimit, NothingIsKnownOfANodeThatIsElsewhere) {
  EXPECT_EQ(LimitOf("launcher: slurm").bytes, 0);
  EXPECT_EQ(LimitOf("launcher: slurm").basis, "");
}

TEST(SlabLimit, IsTheLeastOfNodeRequestAndLimitAndSaysWhich) {
  const NodeMemory node{8 * kGigabyte, "free on this machine"};
  const auto expect = [](const SlabLimit& limit, int64_t gigabytes, const std::string& basis) {
    EXPECT_EQ(limit.bytes, gigabytes * kGigabyte - predict::kProcessBaseBytes) << basis;
    EXPECT_EQ(limit.basis, basis);
  };
  expect(LimitOf("launcher: local", node), 8, "free on this machine");
  expect(LimitOf("memory_limit: 9GB", node), 8, "free on this machine");
  expect(LimitOf("memory_limit: 2GB", node), 2, "memory_limit 2.00 GB");
  expect(LimitOf("launcher: slurm, memory_limit: 9GB, slurm: {memory: 4GB}"), 4, "slurm: memory 4.00 GB");
  expect(LimitOf("launcher: slurm, memory_limit: 3GB, slurm: {memory: 4GB}"), 3, "memory_limit 3.00 GB");
  expect(LimitOf("launcher: kubernetes, kubernetes: {image: x, memory: 4G}"), 4, "kubernetes: memory 4.00 GB");
}

TEST(SlabLimit, AnotherLaunchersSettingsAreNotAsked) {
  EXPECT_EQ(LimitOf("launcher: slurm, kubernetes: {memory: 4Gi}").bytes, 0);
  EXPECT_EQ(LimitOf("launcher: kubernetes, kubernetes: {memory: 4Gi}").bytes,
            (int64_t{4} << 30) - predict::kProcessBaseBytes);
  EXPECT_EQ(LimitOf("launcher: slurm, slurm: {memory: plenty}").bytes, 0) << "which the launcher itself refuses";
}

TEST(SlabLimit, RanksOfANodeShare) {
  const SlabLimit limit = LimitOf("memory_limit: 8GB, nodes: 2", {}, ", ranks: 8");
  EXPECT_EQ(limit.bytes, 2 * kGigabyte - predict::kProcessBaseBytes);
  EXPECT_EQ(limit.basis, "memory_limit 8.00 GB, shared by 4 ranks");
}

TEST(SlabLimit, ReservesNothingBesideAnotherTrainersTensors) {
  EXPECT_EQ(LimitOf("memory_limit: 8GB, trainer: [python3, train.py]", {}, ", ranks: 4").bytes, 2 * kGigabyte);
  EXPECT_EQ(LimitOf("memory_limit: 8GB, trainer: [/opt/bin/ridgeline-train]").bytes,
            8 * kGigabyte - predict::kProcessBaseBytes);
}

TEST(SlabLimit, OnAGpuItIsTheGpusMemoryWhateverTheNodeHas) {
  const SlabLimit limit = LimitOf("memory_limit: 8GB", {4 * kGigabyte, "free"}, ", device: cuda, gpu: h200, ranks: 8");
  EXPECT_EQ(limit.bytes, FindGpu("h200")->usable_bytes - predict::kGpuContextBytes);
  EXPECT_NEAR(static_cast<double>(limit.bytes) / kGigabyte, 149.4, 0.05);
  EXPECT_EQ(limit.basis, "the memory of gpu: h200");
}

TEST(SlabLimit, TheMetaDeviceNeedsNone) {
  EXPECT_EQ(LimitOf("memory_limit: 1MB", {1, "free"}, ", device: meta").bytes, 0);
}

TEST(MemoryHere, AnUnreadableLimitIsUnknown) {
  const TempDir empty;
  EXPECT_EQ(MemoryHere(empty.path()).bytes, 0);
}

}  // namespace
}  // namespace ridgeline::plan
