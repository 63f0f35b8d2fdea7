#include "stats/change_points.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/regress/simulation.h"

namespace ridgeline::regress {
namespace {

// Three runs of each commit, whose number is its name. From the commit `from` on, all take e^change as long.
struct Shift {
  int from = 0;
  double change = 0;
};

std::vector<stats::HistoryRun> History(int commits, const std::vector<Shift>& shifts, uint64_t seed = 1) {
  testing::MachineNoise noise;
  noise.bursts = 0.05;
  noise.disturbed_runs = 0.01;
  testing::MachineSimulation machine(noise, seed);
  std::vector<stats::HistoryRun> history;
  for (int commit = 0; commit < commits; ++commit) {
    double level = 0;
    for (const Shift& shift : shifts) level += commit >= shift.from ? shift.change : 0;
    for (int i = 0; i < 3; ++i) history.push_back({std::to_string(commit), machine.Run(level)});
  }
  return history;
}

TEST(ChangePoints, AreDatedToTheFirstCommitAfterThem) {
  const std::vector<stats::ChangePoint> changes = stats::ChangePoints(History(30, {{22, 0.03}}));
  ASSERT_EQ(changes.size(), 1);
  EXPECT_EQ(changes[0].commit, "22");
  EXPECT_EQ(changes[0].first, 66);
  EXPECT_NEAR(changes[0].change, 0.03, 0.01);
}

TEST(ChangePoints, FindsAllChangesOfAHistory) {
  const std::vector<stats::ChangePoint> changes = stats::ChangePoints(History(60, {{20, 0.05}, {40, -0.04}}));
  ASSERT_EQ(changes.size(), 2);
  EXPECT_EQ(changes[0].commit, "20");
  EXPECT_EQ(changes[1].commit, "40");
  EXPECT_LT(changes[1].change, -0.02);
}

TEST(ChangePoints, AreFewWhereNothingChanged) {
  size_t changes = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) changes += stats::ChangePoints(History(20, {}, seed)).size();
  EXPECT_LE(changes, 3) << "a level of 1 %, over 100 histories";
}

TEST(ChangePoints, OneRunFarOutIsNone) {
  std::vector<stats::HistoryRun> history = History(20, {});
  history[40].log_step_time += 2;
  EXPECT_TRUE(stats::ChangePoints(history).empty());
}

TEST(ChangePoints, OneCommitHasNoChanges) {
  std::vector<stats::HistoryRun> history = History(30, {{15, 0.05}});
  for (stats::HistoryRun& run : history) run.commit = "same";
  EXPECT_TRUE(stats::ChangePoints(history).empty());
  EXPECT_TRUE(stats::ChangePoints({}).empty());
}

}  // namespace
}  // namespace ridgeline::regress
