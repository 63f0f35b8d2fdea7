#include "regress/confirm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace ridgeline::regress {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

GateFinding Suspect(const std::string& point, GateMetric metric = GateMetric::kStepTime) {
  GateFinding finding;
  finding.metric = metric;
  finding.answer = GateAnswer::kInconclusive;
  finding.point = point;
  finding.point_id = point;
  finding.suspect = true;
  finding.tolerance = 0.01;
  return finding;
}

MeasuredRuns OneRun(double ms, int64_t rss_bytes = 0) {
  MeasuredRuns runs;
  runs.log_step_times = {std::log(ms * 1e6)};
  runs.rss_peak_bytes = rss_bytes;
  return runs;
}

class Confirmed : public ::testing::Test {
 protected:
  // For each point, head takes this much longer than base. Runs differ by half a percent.
  void MeasureAll(const std::vector<double>& slower) {
    cells_ = SuspectsOf(gate_);
    EXPECT_TRUE(MeasureInTurns(gate_, cells_,
                               [&](size_t round, size_t pair, bool base_first, std::span<SuspectCell* const> open) {
                                 turns_.push_back(std::to_string(round) + (base_first ? "bh" : "hb"));
                                 EXPECT_EQ(base_first, pair % 2 == 1);
                                 std::vector<RunsInTurn> runs;
                                 for (const SuspectCell* cell : open) {
                                   const double noise = 1 + 0.005 * normal_(random_);
                                   const double more = slower.at(static_cast<size_t>(cell - cells_.data()));
                                   runs.emplace_back(OneRun(100), OneRun(100 * (1 + more) * noise, 1'000'000));
                                 }
                                 return std::optional(runs);
                               }));
    Confirm(gate_, cells_);
  }

  Gate gate_;
  std::vector<SuspectCell> cells_;
  std::vector<std::string> turns_;
  std::mt19937_64 random_{7};
  std::normal_distribution<double> normal_;
};

TEST_F(Confirmed, ASlowdownIsFoundInTwoRoundsOfTurns) {
  gate_.findings = {Suspect("a")};
  MeasureAll({0.05});
  EXPECT_THAT(turns_, ElementsAre("1bh", "1hb", "1bh", "1hb", "1bh", "1hb", "2bh", "2hb", "2bh", "2hb", "2bh", "2hb"));
  EXPECT_EQ(gate_.answer, GateAnswer::kRegressed);
  const GateFinding& finding = gate_.findings[0];
  EXPECT_NEAR(*finding.change, 0.05, 0.01);
  EXPECT_LT(*finding.low, *finding.change);
  EXPECT_GT(*finding.high, *finding.change);
  EXPECT_NEAR(*finding.base, 1e8, 1);
  EXPECT_EQ(finding.base_runs, 12);
}

GateFinding Faint(const std::string& point) {
  GateFinding finding = Suspect(point);
  finding.answer = GateAnswer::kPass;
  finding.suspect = false;
  finding.faint = true;
  return finding;
}

TEST_F(Confirmed, KeepsMeasuringAFaintSlowdownWhileItLasts) {
  gate_.findings = {Faint("a"), Faint("b")};
  MeasureAll({0.0, 0.05});
  EXPECT_THAT(turns_, SizeIs(2 * kPairsOfRound));
  EXPECT_THAT(cells_[0].step_times, SizeIs(1)) << "it was not slower in the first round";
  EXPECT_EQ(gate_.findings[0].point, "b");
  EXPECT_EQ(gate_.findings[0].answer, GateAnswer::kRegressed);
  EXPECT_EQ(gate_.findings[1].answer, GateAnswer::kPass);
}

TEST_F(Confirmed, AFalseAlarmIsAPassThatSaysWhatItDetects) {
  gate_.findings = {Suspect("a"), Suspect("b")};
  MeasureAll({0.0, 0.05});
  EXPECT_EQ(gate_.findings[0].point, "b");
  EXPECT_EQ(gate_.findings[0].answer, GateAnswer::kRegressed);
  EXPECT_EQ(gate_.findings[1].answer, GateAnswer::kPass);
  ASSERT_TRUE(gate_.findings[1].detectable);
  EXPECT_LT(*gate_.findings[1].detectable, 0.02);
  EXPECT_THAT(cells_[0].step_times, SizeIs(1)) << "what is decided is not measured on";
  EXPECT_THAT(cells_[1].step_times, SizeIs(2));
}

TEST_F(Confirmed, AnOpenVerdictSaysHowManyRunsWouldDecide) {
  gate_.findings = {Suspect("a")};
  MeasureAll({0.01});
  EXPECT_EQ(gate_.answer, GateAnswer::kInconclusive);
  EXPECT_THAT(turns_, SizeIs(18));
  EXPECT_GT(gate_.findings[0].further_runs, 0);
}

TEST_F(Confirmed, OneOfManySuspectsMayBeChance) {
  for (int i = 0; i < 60; ++i) gate_.findings.push_back(Suspect("p" + std::to_string(i)));
  cells_ = SuspectsOf(gate_);
  // A change that would suffice by itself: its chance is 0.1 %, and of sixty suspects one may have 0.08 %.
  for (SuspectCell& cell : cells_) {
    const double more = &cell == cells_.data() ? 0.0153 : 0.0;
    for (int round = 0; round < 2; ++round) {
      cell.step_times.emplace_back();
      for (const double noise : {-0.013, 0.013, -0.013, 0.013, -0.013, 0.013}) {
        cell.step_times.back().push_back({0, more + noise});
      }
    }
  }
  Confirm(gate_, cells_);
  EXPECT_NE(gate_.answer, GateAnswer::kRegressed);
  EXPECT_THAT(gate_.findings[0].words, HasSubstr("can be chance"));
  Gate alone;
  alone.findings = {Suspect("p0")};
  Confirm(alone, std::span(cells_).first(1));
  EXPECT_EQ(alone.answer, GateAnswer::kRegressed);
}

TEST_F(Confirmed, MemoryIsJudgedByItsOwnTolerance) {
  gate_.findings = {Suspect("a", GateMetric::kPeakMemory)};
  gate_.findings[0].answer = GateAnswer::kRegressed;
  gate_.findings[0].tolerance = 0.1;
  for (const int64_t head : {1'050'000'000, 1'200'000'000}) {
    Gate gate = gate_;
    std::vector<SuspectCell> cells = SuspectsOf(gate);
    MeasureInTurns(gate, cells, [&](size_t, size_t, bool, std::span<SuspectCell* const>) {
      return std::optional(std::vector<RunsInTurn>{{OneRun(100, 1'000'000'000), OneRun(100, head)}});
    });
    Confirm(gate, cells);
    EXPECT_EQ(gate.answer, head > 1'100'000'000 ? GateAnswer::kRegressed : GateAnswer::kPass);
    EXPECT_NEAR(*gate.findings[0].head, static_cast<double>(head), 1);
  }
}

TEST_F(Confirmed, RunsWithoutAResultMakeNoPair) {
  SuspectCell cell;
  cell.step_times.emplace_back();
  cell.device_peaks.emplace_back();
  cell.rss_peaks.emplace_back();
  MeasuredRuns here = OneRun(100);
  MeasuredRuns there = OneRun(100);
  here.host = "node-1";
  there.host = "node-2";
  MeasuredRuns failed = OneRun(100);
  failed.failure = "crashed";
  AddPair({here, there}, cell);
  AddPair({here, std::nullopt}, cell);
  AddPair({failed, here}, cell);
  EXPECT_THAT(cell.step_times[0], SizeIs(0));
  AddPair({here, here}, cell);
  EXPECT_THAT(cell.step_times[0], SizeIs(1));
  gate_.findings = {Suspect("")};
  Confirm(gate_, {&cell, 1});
  EXPECT_EQ(gate_.answer, GateAnswer::kInconclusive);
  EXPECT_THAT(gate_.findings[0].words, HasSubstr("3 of 4 pairs gave no result on one node"));
  EXPECT_FALSE(gate_.findings[0].high) << "of one pair there is none";
}

// A base build from before an accepted change counts as if it had the change. Other base builds count unchanged.
TEST_F(Confirmed, SubtractsAcceptedChangesFromABaseBuildThatLacksThem) {
  const auto answer_of = [&](double slower, const std::string& base_build) {
    gate_.findings = {Suspect("a")};
    AcceptedChange& change = gate_.findings[0].accepted.emplace_back();
    change.night = "night-3";
    change.step_time_in_turns = 0.055;
    change.base_build = base_build;
    cells_ = SuspectsOf(gate_);
    EXPECT_TRUE(MeasureInTurns(gate_, cells_, [&](size_t, size_t, bool, std::span<SuspectCell* const> open) {
      std::vector<RunsInTurn> runs;
      for (size_t i = 0; i < open.size(); ++i) {
        const double noise = 1 + 0.005 * normal_(random_);
        runs.emplace_back(OneRun(100), OneRun(100 * (1 + slower) * noise));
        runs.back().first->commit = "v1 in /base";
      }
      return std::optional(runs);
    }));
    Confirm(gate_, cells_);
    return gate_.findings[0].answer;
  };
  EXPECT_EQ(answer_of(0.05, "v1 in /base"), GateAnswer::kPass);
  ASSERT_THAT(gate_.findings[0].taken, SizeIs(1));
  EXPECT_EQ(gate_.findings[0].taken[0].night, "night-3");
  EXPECT_EQ(gate_.findings[0].base_build, "v1 in /base");
  EXPECT_EQ(answer_of(0.085, "v1 in /base"), GateAnswer::kRegressed) << "3 % more";
  EXPECT_EQ(answer_of(0.05, "v2 in /base"), GateAnswer::kRegressed);
  EXPECT_THAT(gate_.findings[0].taken, SizeIs(0));
}

// Head and base run in turns. Only failures that repeat in head alone are red.
TEST_F(Confirmed, AFailureIsRunAgainInTurns) {
  struct Case {
    size_t head_fails_in;  // number of the pair; 0: in none
    bool base_fails;
    GateAnswer answer;
    size_t pairs;
  };
  for (const Case& each : {Case{0, false, GateAnswer::kPass, 6}, Case{2, false, GateAnswer::kRegressed, 2},
                           Case{1, true, GateAnswer::kInconclusive, 1}}) {
    gate_.findings = {Suspect("a", GateMetric::kResult)};
    cells_ = SuspectsOf(gate_);
    size_t pairs = 0;
    EXPECT_TRUE(MeasureInTurns(gate_, cells_, [&](size_t, size_t pair, bool, std::span<SuspectCell* const> open) {
      ++pairs;
      EXPECT_THAT(open, SizeIs(1));
      RunsInTurn runs = {OneRun(100), OneRun(100)};
      if (pair == each.head_fails_in) runs.second->failure = "crashed";
      if (each.base_fails) runs.first->failure = "crashed";
      return std::optional(std::vector<RunsInTurn>{runs});
    }));
    Confirm(gate_, cells_);
    EXPECT_EQ(gate_.findings[0].answer, each.answer) << gate_.findings[0].words;
    EXPECT_EQ(pairs, each.pairs);
  }
}

TEST_F(Confirmed, AnInterruptedConfirmationDecidesNothing) {
  gate_.findings = {Suspect("a")};
  cells_ = SuspectsOf(gate_);
  EXPECT_FALSE(MeasureInTurns(gate_, cells_, [](size_t, size_t, bool, std::span<SuspectCell* const>) {
    return std::optional<std::vector<RunsInTurn>>();
  }));
}

}  // namespace
}  // namespace ridgeline::regress
