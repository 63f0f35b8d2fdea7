#include "cli/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/spec.h"

namespace ridgeline {
namespace {

// The launcher's own mapping, limited to node-7.
Json KeptTo7(const std::string& launcher, const Json& own) {
  Launch launch;
  launch.launcher = launcher;
  if (!own.is_null()) launch.config[launcher] = own;
  KeepToNode(launch, "node-7");
  return launch.config.contains(launcher) ? launch.config[launcher] : Json();
}

TEST(TurnsOfOneNode, AreAskedForAsTheLauncherHasIt) {
  EXPECT_EQ(KeptTo7("slurm", Json()), Json({{"nodelist", "node-7"}}));
  EXPECT_EQ(KeptTo7("slurm", {{"partition", "gpu"}}), Json({{"nodelist", "node-7"}, {"partition", "gpu"}}));
  EXPECT_EQ(KeptTo7("kubernetes", {{"node_selector", {{"pool", "a"}}}}),
            Json({{"node_selector", {{"pool", "a"}, {"kubernetes.io/hostname", "node-7"}}}}));
  EXPECT_EQ(KeptTo7("local", Json()), Json());
}

TEST(TurnsOfOneNode, AreNotWhereTheSweepSaysANode) {
  EXPECT_EQ(KeptTo7("slurm", {{"nodelist", "node-1"}}), Json({{"nodelist", "node-1"}}));
  Launch launch;
  launch.launcher = "slurm";
  KeepToNode(launch, "node-7 node-8");
  KeepToNode(launch, "");
  EXPECT_FALSE(launch.config.contains("slurm"));
}

TEST(TurnsOfOneRun, AreTheSamePointOtherwise) {
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec({{"model", "llama-10m"}, {"repeats", 3}}, problems);
  ASSERT_TRUE(problems.empty());
  const std::string id = IdOfOneRun(EncodeSpec(spec));
  EXPECT_NE(id, PointId(spec));
  spec.repeats = 1;
  EXPECT_EQ(id, PointId(spec));
}

}  // namespace
}  // namespace ridgeline
