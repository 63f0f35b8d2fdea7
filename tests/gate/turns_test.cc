#include "gate/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/launcher.h"
#include "run/spec.h"
#include "tests/fakes/test_job.h"

namespace ridgeline::gate {
namespace {

// The launcher's own mapping, limited to node-7.
Json KeptTo7(const std::string& launcher, const Json& own) {
  sweep::Launch launch;
  launch.launcher = launcher;
  launch.describe = launch::AskLaunchers(launcher == "scripted" ? testing::FakePluginDir() : RIDGELINE_PLUGIN_DIR);
  if (!own.is_null()) launch.config[launcher] = own;
  EXPECT_TRUE(KeepToNode(launch, "node-7"));
  return launch.config.contains(launcher) ? launch.config[launcher] : Json();
}

TEST(TurnsOfOneNode, PinAJobInTheLaunchersOwnWay) {
  EXPECT_EQ(KeptTo7("slurm", Json()), Json({{"nodelist", "node-7"}}));
  EXPECT_EQ(KeptTo7("slurm", {{"partition", "gpu"}}), Json({{"nodelist", "node-7"}, {"partition", "gpu"}}));
  EXPECT_EQ(KeptTo7("kubernetes", {{"node_selector", {{"pool", "a"}}}}),
            Json({{"node_selector", {{"pool", "a"}, {"kubernetes.io/hostname", "node-7"}}}}));
  EXPECT_EQ(KeptTo7("local", Json()), Json());
  EXPECT_EQ(KeptTo7("scripted", {{"ram", "1GB"}}), Json({{"ram", "1GB"}, {"host", "node-7"}})) << "of any launcher";
}

TEST(TurnsOfOneNode, DoNotPinAJobWhoseSweepNamesANode) {
  EXPECT_EQ(KeptTo7("slurm", {{"nodelist", "node-1"}}), Json({{"nodelist", "node-1"}}));
  EXPECT_EQ(KeptTo7("kubernetes", {{"node_selector", {{"kubernetes.io/hostname", "node-1"}}}}),
            Json({{"node_selector", {{"kubernetes.io/hostname", "node-1"}}}}));
  sweep::Launch launch;
  launch.launcher = "slurm";
  KeepToNode(launch, "node-7 node-8");
  KeepToNode(launch, "");
  EXPECT_FALSE(launch.config.contains("slurm"));
}

TEST(TurnsOfOneNode, AreRefusedIfTheLauncherCannotPinJobs) {
  sweep::Launch launch;
  launch.launcher = "scripted";
  launch.config = {{"scripted", {{"anywhere", true}}}};
  launch.describe = launch::AskLaunchers(testing::FakePluginDir());
  EXPECT_FALSE(KeepToNode(launch, "node-7"));
}

TEST(TurnsOfOneRun, HaveTheIdOfTheSamePointWithOneRepeat) {
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec({{"model", "llama-10m"}, {"repeats", 3}}, problems);
  ASSERT_TRUE(problems.empty());
  const std::string id = IdOfOneRun(EncodeSpec(spec));
  EXPECT_NE(id, PointId(spec));
  spec.repeats = 1;
  EXPECT_EQ(id, PointId(spec));
}

}  // namespace
}  // namespace ridgeline::gate
