#include "regress/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ridgeline::regress {
namespace {

using ::testing::ElementsAre;
using Rounds = std::vector<std::vector<RunPair>>;

// Pairs whose differences alternate between change + spread and change - spread.
std::vector<RunPair> Round(double change, double spread, size_t pairs = kPairsOfRound) {
  std::vector<RunPair> round;
  for (size_t i = 0; i < pairs; ++i) round.push_back({5, 5 + change + (i % 2 == 0 ? spread : -spread)});
  return round;
}

TEST(Verdict, PassesWhereTheIntervalEndsBelowTheTolerance) {
  const Judgement judgement = Judge(Rounds{Round(0.001, 0.004)});
  EXPECT_EQ(judgement.decision, Decision::kPass);
  EXPECT_NEAR(judgement.change, 0.001, 1e-12);
  // Differences deviate by 0.004 sqrt(6 / 5); Student's t of 5 degrees has 2.5706 and, above 20 %, 0.9195.
  EXPECT_NEAR(judgement.high, 0.001 + 2.5706 * 0.004 / std::sqrt(5), 1e-6);
  EXPECT_NEAR(judgement.low, 0.001 - 2.5706 * 0.004 / std::sqrt(5), 1e-6);
  EXPECT_NEAR(judgement.detectable, (2.5706 + 0.9195) * 0.004 / std::sqrt(5), 1e-6);
  EXPECT_EQ(judgement.further_runs, 0);
}

TEST(Verdict, ARegressionIsConfirmedByASecondRound) {
  const Judgement once = Judge(Rounds{Round(0.03, 0.01)});
  EXPECT_EQ(once.decision, Decision::kInconclusive);
  EXPECT_EQ(once.further_runs, 12) << "another round";
  const Judgement twice = Judge(Rounds{Round(0.03, 0.01), Round(0.025, 0.01)});
  EXPECT_EQ(twice.decision, Decision::kRegressed);
  EXPECT_GT(twice.low, 0);
  EXPECT_LT(twice.chance, 1e-4);
}

TEST(Verdict, ARoundThatDoesNotConfirmLeavesItOpen) {
  EXPECT_EQ(Judge(Rounds{Round(0.03, 0.01), Round(0.01, 0.03)}).decision, Decision::kInconclusive);
  EXPECT_EQ(Judge(Rounds{Round(0.03, 0.01), Round(0.01, 0.03), Round(0.03, 0.01)}).decision, Decision::kRegressed);
}

TEST(Verdict, ASlowdownWithinTheToleranceIsNone) {
  const Rounds rounds = {Round(0.008, 0.0005), Round(0.008, 0.0005)};
  EXPECT_EQ(Judge(rounds).decision, Decision::kPass);
  EXPECT_EQ(Judge(rounds, 0.005).decision, Decision::kRegressed);
}

TEST(Verdict, FasterPasses) { EXPECT_EQ(Judge(Rounds{Round(-0.05, 0.01)}).decision, Decision::kPass); }

TEST(Verdict, SaysHowManyRunsWouldDecide) {
  const Judgement open = Judge(Rounds{Round(0.002, 0.01)});
  ASSERT_EQ(open.decision, Decision::kInconclusive);
  EXPECT_EQ(open.further_runs % 4, 0) << "whole turns of base, head, head, base";
  const auto pairs = kPairsOfRound + static_cast<size_t>(open.further_runs) / 2;
  const double scale = std::sqrt(6.0 / 5 * (static_cast<double>(pairs) - 1) / static_cast<double>(pairs));
  EXPECT_EQ(Judge(Rounds{Round(0.002, 0.01 * scale, pairs)}).decision, Decision::kPass);
  EXPECT_EQ(Judge(Rounds{Round(0.002, 0.01 * scale, pairs - 2)}).decision, Decision::kInconclusive);
  EXPECT_EQ(Judge(Rounds{Round(std::log1p(kTolerance), 0.01)}).further_runs, kMostRuns) << "on the edge";
}

TEST(Verdict, IsOpenWithoutPairs) {
  EXPECT_EQ(Judge({}).decision, Decision::kInconclusive);
  EXPECT_EQ(Judge(Rounds{Round(-0.5, 0, 1)}).decision, Decision::kInconclusive) << "one pair has no interval";
  EXPECT_EQ(Judge({}).further_runs, 12);
}

TEST(Verdict, RunsThatNeverVaryAreJudgedAsTheyAre) {
  EXPECT_EQ(Judge(Rounds{Round(0, 0)}).decision, Decision::kPass);
  EXPECT_EQ(Judge(Rounds{Round(0.5, 0), Round(0.5, 0)}).decision, Decision::kRegressed);
}

TEST(Verdict, HasAName) {
  EXPECT_EQ(DecisionName(Decision::kPass), "PASS");
  EXPECT_EQ(DecisionName(Decision::kRegressed), "REGRESSED");
  EXPECT_EQ(DecisionName(Decision::kInconclusive), "INCONCLUSIVE");
}

TEST(Discoveries, AreThoseBelowTheLineOfBenjaminiAndHochberg) {
  EXPECT_THAT(Discoveries(std::vector<double>{}, 0.05), ElementsAre());
  EXPECT_THAT(Discoveries(std::vector<double>{0.2, 0.01, 0.04, 0.02}, 0.05), ElementsAre(false, true, false, true));
  EXPECT_THAT(Discoveries(std::vector<double>{0.049, 0.05}, 0.05), ElementsAre(true, true))
      << "the largest draws the rest";
  EXPECT_THAT(Discoveries(std::vector<double>{0.03, 1}, 0.05), ElementsAre(false, false));
  EXPECT_THAT(Discoveries(std::vector<double>{0.03, 1}, 0.1), ElementsAre(true, false));
}

}  // namespace
}  // namespace ridgeline::regress
