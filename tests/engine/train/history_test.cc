#include "engine/train/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace ridgeline::engine {
namespace {

using ::testing::ElementsAre;

// Steps that took 1, 2, 3, … ns, run by these processes.
History Carried(int64_t steps, std::vector<History::Process> processes) {
  History history;
  for (int64_t step = 1; step <= steps; ++step) {
    history.loss.push_back(1.0 / static_cast<double>(step));
    history.step_ns.push_back(step);
  }
  history.processes = std::move(processes);
  return history;
}

RunSpec WarmUp(int64_t steps) {
  RunSpec spec;
  spec.warmup_steps = steps;
  return spec;
}

TEST(History, SteadyIsWhatIsPastTheWarmUp) {
  EXPECT_THAT(SteadySteps(WarmUp(2), Carried(5, {{1, "a"}})), ElementsAre(3, 4, 5));
  EXPECT_THAT(SteadySteps(WarmUp(0), Carried(2, {{1, "a"}})), ElementsAre(1, 2));
  EXPECT_THAT(SteadySteps(WarmUp(2), Carried(2, {{1, "a"}})), ElementsAre());
}

TEST(History, TheFirstStepsOfEveryProcessAreCold) {
  EXPECT_THAT(SteadySteps(WarmUp(1), Carried(8, {{1, "a"}, {4, "a"}, {7, "a"}})), ElementsAre(2, 3, 5, 6, 8));
}

TEST(History, StepsOfAnotherMachineDoNotCount) {
  EXPECT_THAT(SteadySteps(WarmUp(1), Carried(8, {{1, "a"}, {4, "b"}, {7, "a"}})), ElementsAre(2, 3, 8));
  EXPECT_THAT(SteadySteps(WarmUp(1), Carried(8, {{1, "a"}, {4, "b"}})), ElementsAre(5, 6, 7, 8));
}

TEST(History, IfAllStepsAreColdAllPastTheWarmUpCount) {
  EXPECT_THAT(SteadySteps(WarmUp(2), Carried(5, {{1, "a"}, {3, "a"}, {5, "a"}})), ElementsAre(3, 4, 5));
  // Continued at the very end, on another machine.
  EXPECT_THAT(SteadySteps(WarmUp(2), Carried(4, {{1, "a"}, {5, "b"}})), ElementsAre(3, 4));
}

TEST(History, TravelsToTheBit) {
  History history = Carried(3, {{1, "a \"machine\""}, {2, "b"}});
  history.loss = {0.1, 1.0 / 3, 5e-324};
  history.grad_norm = {1e300, INFINITY, 0.1F};
  const History back = DecodeHistory(ParseJson(DumpJson(EncodeHistory(history)), "history"));
  EXPECT_EQ(back.loss, history.loss);
  EXPECT_EQ(back.step_ns, history.step_ns);
  EXPECT_EQ(back.grad_norm[0], 1e300);
  EXPECT_FALSE(std::isfinite(back.grad_norm[1]));
  EXPECT_EQ(back.grad_norm[2], 0.1F);
  ASSERT_EQ(back.processes.size(), 2U);
  EXPECT_EQ(back.processes[0].machine, "a \"machine\"");
  EXPECT_EQ(back.processes[1].first_step, 2);
}

}  // namespace
}  // namespace ridgeline::engine
