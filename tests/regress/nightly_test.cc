#include "regress/nightly.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/regress/simulation.h"

namespace ridgeline::regress {
namespace {

// Alternates around 0 by ± spread: a median of 0, and a sigma of 1.4826 spread.
std::vector<double> History(double spread, size_t runs = kHistoryRuns) {
  std::vector<double> history;
  for (size_t i = 0; i < runs; ++i) history.push_back(i % 2 == 0 ? spread : -spread);
  return history;
}

TEST(Nightly, NoBaselineIsMadeOfAShortHistory) {
  EXPECT_FALSE(RollingBaseline(History(0.01, kHistoryRuns - 1)));
  const auto baseline = RollingBaseline(History(0.01));
  ASSERT_TRUE(baseline);
  EXPECT_DOUBLE_EQ(baseline->log_step_time, 0);
  EXPECT_DOUBLE_EQ(baseline->sigma, 0.014826);
}

TEST(Nightly, ABaselineIsOfTheLastRuns) {
  std::vector<double> history(50, 1.0);
  history.insert(history.end(), kHistoryRuns, 2.0);
  EXPECT_DOUBLE_EQ(RollingBaseline(history)->log_step_time, 2);
}

TEST(Nightly, OnAQuietMachineTheToleranceIsTheThreshold) {
  const Baseline quiet{0, 0, kHistoryRuns};
  EXPECT_FALSE(Screen(std::vector<double>{std::log(1.0099)}, quiet).suspect);
  EXPECT_TRUE(Screen(std::vector<double>{std::log(1.0101)}, quiet).suspect);
  EXPECT_FALSE(Screen(std::vector<double>{std::log(1.04)}, quiet, 0.05).suspect);
}

TEST(Nightly, OnALoudMachineTheNoiseIs) {
  const Screening screening = Screen(std::vector<double>{0.03, 0.02, 0.04}, {0, 0.01, 20});
  EXPECT_NEAR(screening.threshold, 0.0193, 1e-4) << "3 sigma sqrt(1 / 3 + 1.57 / 20)";
  EXPECT_NEAR(screening.detectable, 0.0247, 1e-4);
  EXPECT_NEAR(screening.change, 0.03, 1e-12);
  EXPECT_TRUE(screening.suspect);
  EXPECT_FALSE(Screen(std::vector<double>{-0.5, -0.5}, {0, 0.01, 20}).suspect) << "faster is no suspect";
}

TEST(Nightly, NoiseThatAllRunsOfANightShareCountsToo) {
  const std::vector<double> runs = History(0.01);
  std::vector<double> nights;
  for (size_t i = 0; i < kSigmaNights; ++i) nights.push_back(i % 2 == 0 ? 0.02 : -0.02);
  const Baseline of_few = *RollingBaseline(runs, std::span(nights).first(kSigmaNights - 1));
  EXPECT_EQ(of_few.nights, 0U) << "too few nights to say how they differ";
  const Baseline baseline = *RollingBaseline(runs, nights);
  EXPECT_EQ(baseline.nights, kSigmaNights);
  EXPECT_NEAR(baseline.nights_sigma, 0.021, 1e-3);
  const std::vector<double> tonight = {0.05, 0.05, 0.05};
  EXPECT_TRUE(Screen(tonight, of_few).suspect);
  EXPECT_FALSE(Screen(tonight, baseline).suspect);
  EXPECT_TRUE(Screen(tonight, baseline).faint);
}

TEST(Nightly, OneDisturbedRunIsFaintAndNoSuspect) {
  const Screening screening = Screen(std::vector<double>{0, 0.001, 0.08}, {0, 0.01, kHistoryRuns});
  EXPECT_GT(screening.change, screening.threshold);
  EXPECT_FALSE(screening.suspect) << "its median is as ever";
  EXPECT_TRUE(screening.faint);
  EXPECT_FALSE(Screen(std::vector<double>{0, 0.001, 0.002}, {0, 0.01, kHistoryRuns}).faint);
}

TEST(Nightly, APinnedBaselineSeesTheCreepThatARollingOneGoesAlongWith) {
  testing::MachineNoise noise;
  noise.between_runs = 0.004;
  testing::MachineSimulation machine(noise, 1);
  std::vector<double> history;
  while (history.size() < kHistoryRuns) history.push_back(machine.Run(0));
  const std::vector<double> release = history;
  int rolling_suspects = 0;
  int pinned_suspects = 0;
  for (int night = 1; night <= 60; ++night) {
    std::vector<double> tonight;
    for (int i = 0; i < 3; ++i) tonight.push_back(machine.Run(0.0005 * night));
    const Baseline rolling = *RollingBaseline(history);
    rolling_suspects += Screen(tonight, rolling).suspect ? 1 : 0;
    if (night > 40) pinned_suspects += Screen(tonight, PinnedBaseline(release, rolling)).suspect ? 1 : 0;
    history.insert(history.end(), tonight.begin(), tonight.end());
  }
  EXPECT_LE(rolling_suspects, 2);
  EXPECT_GE(pinned_suspects, 19) << "of the nights from 2 % on";
}

TEST(Nightly, TheChanceOfRanksIsExact) {
  const std::vector<double> before = {1, 2, 3, 4, 5, 6, 7};
  const auto above = JudgeNights(before, std::vector<double>{8, 9, 10, 11, 12, 13});
  ASSERT_TRUE(above);
  EXPECT_NEAR(above->chance, 1.0 / 1716, 1e-12) << "one of 13 over 6";
  EXPECT_TRUE(above->slower);
  EXPECT_EQ(above->first, 0U);
  EXPECT_DOUBLE_EQ(above->change, 6.5);
  EXPECT_NEAR(JudgeNights(before, std::vector<double>{8, 9, 10, 11, 12, 6.5})->chance, 2.0 / 1716, 1e-12);
  EXPECT_NEAR(JudgeNights(before, std::vector<double>{0, 0, 0, 0, 0, 0})->chance, 1, 1e-12);
  EXPECT_FALSE(JudgeNights(before, std::vector<double>{1, 1, 1, 1, 1, 0})->slower);
  EXPECT_FALSE(JudgeNights(before, std::vector<double>{9, 9, 9, 9, 9, 4})->slower) << "tonight is as ever";
  EXPECT_FALSE(JudgeNights(before, std::vector<double>{9, 9, 9, 9, 9})) << "too few";
  EXPECT_FALSE(JudgeNights({}, std::vector<double>{9, 9, 9, 9, 9, 9}));
}

TEST(Nightly, ALargeChangeIsBeyondTenPercentAndNoise) {
  const Baseline quiet{0, 0.01, kHistoryRuns};
  EXPECT_TRUE(IsLarge(std::vector<double>{0.2, 0.2, 0.2}, quiet));
  EXPECT_FALSE(IsLarge(std::vector<double>{0.05, 0.05, 0.9}, quiet)) << "one run of three is an accident";
  EXPECT_FALSE(IsLarge(std::vector<double>{0.2, 0.2, 0.2}, {0, 0.1, kHistoryRuns}));
}

TEST(Nightly, MemoryGrowsBeyondNoise) {
  constexpr int64_t kMiB = 1 << 20;
  EXPECT_FALSE(MemoryGrew(1000 * kMiB, 1064 * kMiB));
  EXPECT_TRUE(MemoryGrew(1000 * kMiB, 1064 * kMiB + 1));
  EXPECT_FALSE(MemoryGrew(80'000 * kMiB, 80'400 * kMiB)) << "0.5 % of much is more";
  EXPECT_TRUE(MemoryGrew(80'000 * kMiB, 80'400 * kMiB + 1));
  EXPECT_FALSE(MemoryGrew(80'000 * kMiB, 10 * kMiB));
}

}  // namespace
}  // namespace ridgeline::regress
