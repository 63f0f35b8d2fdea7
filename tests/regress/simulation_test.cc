// The quality of the gate's rules on a noisy machine.
#include "tests/regress/simulation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/regress/night_simulation.h"

namespace ridgeline::regress {
namespace {

// Runs differ by this much, drift, are slowed in bursts, and occasionally throughout.
testing::MachineNoise Noise(double between_runs) {
  testing::MachineNoise noise;
  noise.between_runs = between_runs;
  noise.drift_of_nights = 0.005;
  noise.drift_of_session = 0.005;
  noise.bursts = 0.05;
  noise.disturbed_runs = 0.003;
  return noise;
}

class QuietNights : public ::testing::TestWithParam<double> {};

TEST_P(QuietNights, AQuietNightOf100CellsIsNotRed) {
  const testing::NightCounts counts = testing::MachineSimulation(Noise(GetParam()), 1).CountRedNights(300);
  EXPECT_LE(counts.red, counts.nights / 100) << "1 %";
  EXPECT_GT(counts.suspects, 0) << "a machine that nobody suspects proves nothing";
  EXPECT_LT(counts.suspects, 2 * counts.nights) << "measuring again stays cheap: of 100 cells two a night";
  RecordProperty("red_nights", static_cast<int>(counts.red));
  RecordProperty("suspects", static_cast<int>(counts.suspects));
  RecordProperty("inconclusive_nights", static_cast<int>(counts.inconclusive));
}

INSTANTIATE_TEST_SUITE_P(BetweenRuns, QuietNights, ::testing::Values(0.004, 0.01));

TEST(GateSimulation, FindsASlowdownOf3PercentInTheNightItComes) {
  const double change = std::log(1.03);
  const int64_t quiet = testing::MachineSimulation(Noise(0.004), 2).CountFound(200, change);
  EXPECT_GE(quiet, 198);
  RecordProperty("found_of_200_where_runs_differ_less", static_cast<int>(quiet));
  const int64_t found = testing::MachineSimulation(Noise(0.01), 1).CountFound(2000, change);
  EXPECT_GE(found, 1700) << "85 %";
  RecordProperty("found_of_2000", static_cast<int>(found));
}

TEST(GateSimulation, NightsTogetherDecideWithoutTurns) {
  using testing::NightSimulation;
  EXPECT_EQ(NightSimulation({}, false, 1).Quiet(60).red, 0);
  EXPECT_EQ(NightSimulation({.nights = 0.01}, false, 1).Quiet(60).red, 0) << "a night is one observation";
  EXPECT_EQ(NightSimulation({.disturbed = 0.02}, false, 1).Quiet(60).red, 0);
  const testing::SlowdownRates slow = NightSimulation({}, false, 2).Slowdown(15, std::log(1.03));
  EXPECT_GE(slow.six_nights, 14);
  EXPECT_EQ(NightSimulation({.lost = 0.01}, false, 2).Slowdown(5, std::log(1.5)).first_night, 5) << "red at once";
  const testing::AcceptedRates accepted = NightSimulation({}, true, 4).Accepted(10);
  EXPECT_EQ(accepted.red, 0) << "the base build stays the one without what was accepted";
  EXPECT_EQ(accepted.six_nights, accepted.cells);
  EXPECT_GE(NightSimulation({}, false, 3).Creep(20, 0.0005, 60, true), 15);
}

}  // namespace
}  // namespace ridgeline::regress
