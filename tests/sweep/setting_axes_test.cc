// Settings of `launch:` as axes.
#include "sweep/setting_axes.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/launch.h"

namespace ridgeline::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sweep SweepOfSettings(const std::string& text) {
  return ParseSweep("name: settings\n" + text, "s.yaml", {}, {.set = {"model=llama-10m"}, .only = {}});
}

std::string RefusalOfSettings(const std::string& text) {
  try {
    Expand(SweepOfSettings(text));
  } catch (const Error& e) {
    return e.message();
  }
  return "accepted";
}

TEST(SettingAxes, AVariableIsPartOfItsPointsAndTheirEnvironment) {
  const Sweep sweep = SweepOfSettings(
      "matrix: {environment.NCCL_ALGO: [Ring, Tree]}\nlaunch: {environment: {NCCL_ALGO: none, A: b}}\n");
  const std::vector<Point> points = Expand(sweep);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_NE(points[0].id, points[1].id);
  EXPECT_EQ(points[0].id, PointId(points[0].spec));
  using Environment = std::map<std::string, std::string>;
  EXPECT_EQ(LaunchOf(sweep, points[0]).environment, (Environment{{"A", "b"}, {"NCCL_ALGO", "Ring"}}));
  EXPECT_EQ(LaunchOf(sweep, points[1]).environment, (Environment{{"A", "b"}, {"NCCL_ALGO", "Tree"}}));
  EXPECT_NE(SetupOf(LaunchOf(sweep, points[0])), SetupOf(LaunchOf(sweep, points[1])));
  // The trainer gets the whole spec, and finds the same point in it.
  const Json spec = ParseJson(EncodePoint(points[0].spec), "a spec");
  EXPECT_EQ(PointId(DecodeSpec(spec, "a spec")), points[0].id);
  ASSERT_EQ(VaryingFields(sweep).size(), 1U);
  EXPECT_EQ(FieldText(points[1].spec, *VaryingFields(sweep).front()), "Tree");
}

TEST(SettingAxes, ALaunchersAxisOverridesItsMappingAndEveryRule) {
  const Sweep sweep = SweepOfSettings(
      "matrix: {slurm.container: [a.sqsh, b.sqsh]}\n"
      "launch:\n  launcher: slurm\n  slurm: {partition: p, container: c.sqsh}\n"
      "  rules: [{when: {batch_size: 1}, set: {slurm: {container: d.sqsh}}}]\n");
  std::vector<std::string> containers;
  for (const Point& point : Expand(sweep)) {
    const Launch launch = LaunchOf(sweep, point);
    containers.push_back(launch.config["slurm"]["container"]);
    EXPECT_EQ(launch.config["slurm"]["partition"], "p");
  }
  EXPECT_THAT(containers, ElementsAre("a.sqsh", "b.sqsh"));
}

TEST(SettingAxes, AxesOfWholeNumbersTakeRangesAndComparisons) {
  const Sweep sweep = SweepOfSettings(
      "matrix: {environment.OMP_NUM_THREADS: 1..8*2}\nexclude: [{environment.OMP_NUM_THREADS: '>4'}]\n");
  std::vector<std::string> threads;
  for (const Point& point : Expand(sweep)) threads.push_back(LaunchOf(sweep, point).environment.at("OMP_NUM_THREADS"));
  EXPECT_THAT(threads, ElementsAre("1", "2", "4"));
}

TEST(SettingAxes, MayBeSetForSomePointsAlone) {
  const Sweep sweep =
      SweepOfSettings("matrix: {batch_size: [1, 2]}\ninclude: [{batch_size: 2, environment.LEVEL: [0, high]}]\n");
  std::vector<std::string> levels;
  for (const Point& point : Expand(sweep)) {
    const auto environment = LaunchOf(sweep, point).environment;
    levels.push_back(environment.contains("LEVEL") ? environment.at("LEVEL") : "unset");
  }
  EXPECT_THAT(levels, ElementsAre("unset", "0", "high"));
}

TEST(SettingAxes, KeepTheIdsOfSweepsWithoutThem) {
  const Sweep plain = SweepOfSettings("launch: {environment: {A: b}}\n");
  EXPECT_TRUE(Expand(plain).front().spec.own.empty());
}

TEST(SettingAxes, RefuseSettingsThatAreWrongOrChangeNoFiguresAtTheirPlace) {
  EXPECT_THAT(RefusalOfSettings("matrix: {slurm.partition: [a, b]}\n"),
              HasSubstr("s.yaml:2:10: slurm.partition cannot be an axis"));
  EXPECT_THAT(RefusalOfSettings("matrix: {environment.7UP: [a]}\n"), HasSubstr("the name of a variable"));
  EXPECT_THAT(RefusalOfSettings("matrix: {environment.A: [1.5]}\n"), HasSubstr("s.yaml:2:26"));
  EXPECT_THAT(RefusalOfSettings("matrix: {environment: [a]}\n"), HasSubstr("environment"));
  EXPECT_THAT(RefusalOfSettings("exclude: [{environment.A: b}]\n"), HasSubstr("unknown field 'environment.A'"));
}

}  // namespace
}  // namespace ridgeline::sweep
