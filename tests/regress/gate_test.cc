#include "regress/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "regress/accepted.h"
#include "regress/nightly.h"
#include "regress/verdict.h"
#include "tests/regress/nights.h"

namespace ridgeline::regress {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Timed;

using enum GateAnswer;
using enum GateMetric;

constexpr int kEnoughNights = 7;  // nights of three runs

class Gated : public ::testing::Test {
 protected:
  Gate GateOf(const std::string& head, const std::string& pinned = {}) { return MakeGate(nights_.Sides(head, pinned)); }
  static const GateFinding* Find(const Gate& gate, const std::string& point, GateMetric metric) {
    const auto found = std::find_if(gate.findings.begin(), gate.findings.end(), [&](const GateFinding& finding) {
      return finding.point == point && finding.metric == metric;
    });
    return found == gate.findings.end() ? nullptr : &*found;
  }
  // The first point ends like this, the other as always.
  void AddTonight(const std::function<RunResult(const Point&)>& first) {
    nights_.Add("tonight", [&](const Point& point) {
      return point.id == nights_.points()[0].id ? first(point) : Timed(point, testing::ThreeRuns(100));
    });
  }

  TempDir dir_;
  store::Store store_ = store::Store::Open(dir_.path() / "ridgeline.db", store::Store::Mode::kReadWrite);
  testing::Nights nights_{store_};
};

TEST_F(Gated, ANightLikeTheOthersPassesAndSaysWhatItWouldHaveSeen) {
  nights_.AddSeveral(kEnoughNights);
  nights_.Add("tonight", 100.2);
  const Gate gate = GateOf("tonight");
  EXPECT_EQ(gate.answer, kPass);
  EXPECT_EQ(GateExitCode(gate.answer), 0);
  ASSERT_EQ(gate.findings.size(), 4U) << "two points, their time and their memory";
  for (const GateFinding& finding : gate.findings) {
    EXPECT_EQ(finding.answer, kPass);
    ASSERT_TRUE(finding.detectable);
    EXPECT_GT(*finding.detectable, 0.005);
  }
  const GateFinding* step = Find(gate, "seed=0", kStepTime);
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->base_runs, 20);
  EXPECT_EQ(step->head_runs, 3);
  EXPECT_NEAR(*step->change, 0.002, 3e-4);
  EXPECT_NEAR(*step->base, 1e8, 1e5);
}

TEST_F(Gated, ASlowerCellIsASuspectUntilItIsMeasuredAgain) {
  nights_.AddSeveral(kEnoughNights);
  AddTonight([](const Point& point) { return Timed(point, testing::ThreeRuns(105)); });
  const Gate gate = GateOf("tonight");
  EXPECT_EQ(gate.answer, kInconclusive);
  EXPECT_EQ(GateExitCode(gate.answer), 4);
  EXPECT_EQ(gate.findings[0].point, "seed=0") << "the worst is first";
  EXPECT_TRUE(gate.findings[0].suspect);
  EXPECT_NEAR(*gate.findings[0].change, 0.05, 1e-3);
  EXPECT_EQ(gate.findings[0].further_runs, static_cast<int64_t>(4 * kPairsOfRound));
  EXPECT_FALSE(gate.findings[1].suspect);
  EXPECT_EQ(GateCounts(gate), "1 inconclusive, 3 pass");
}

RunResult Disturbed(RunResult result) {
  result.cores.busy_share = 0.9;
  result.cores.others_share = 0.4;
  return result;
}

TEST_F(Gated, ANightThatOthersDisturbedIsNeverRedByItself) {
  nights_.AddSeveral(kEnoughNights);
  AddTonight([](const Point& point) { return Disturbed(Timed(point, testing::ThreeRuns(130))); });
  const Gate gate = GateOf("tonight");
  EXPECT_EQ(gate.answer, kInconclusive) << "30 % would be red at once";
  EXPECT_TRUE(gate.findings[0].suspect);
  EXPECT_THAT(gate.findings[0].words, HasSubstr("others took 40 % of its cores' time"));
}

TEST_F(Gated, NightsThatOthersDisturbedAreNoBaselineWhereThereAreEnoughOthers) {
  nights_.AddSeveral(kEnoughNights);
  const auto disturbed = [](const Point& point) { return Disturbed(Timed(point, testing::ThreeRuns(130))); };
  for (int i = kEnoughNights + 1; i < kEnoughNights + 5; ++i) nights_.Add("night-" + std::to_string(i), disturbed);
  nights_.Add("tonight", 100);
  const Gate gate = GateOf("tonight");
  EXPECT_EQ(gate.answer, kPass);
  EXPECT_NEAR(*Find(gate, "seed=0", kStepTime)->base, 1e8, 1e5);
}

TEST_F(Gated, IfEveryNightIsDisturbedThatIsNormal) {
  const auto disturbed = [](double ms) {
    return [ms](const Point& point) { return Disturbed(Timed(point, testing::ThreeRuns(ms))); };
  };
  for (int i = 1; i <= kEnoughNights; ++i) nights_.Add("night-" + std::to_string(i), disturbed(100));
  nights_.Add("tonight", disturbed(130));
  EXPECT_EQ(GateOf("tonight").answer, kRegressed);
}

TEST_F(Gated, AShortHistoryIsNoBaseline) {
  nights_.AddSeveral(kEnoughNights - 1);
  nights_.Add("tonight", 100);
  const Gate gate = GateOf("tonight");
  EXPECT_EQ(gate.answer, kInconclusive);
  const GateFinding* step = Find(gate, "seed=1", kStepTime);
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->answer, kInconclusive);
  EXPECT_FALSE(step->suspect);
  EXPECT_EQ(step->further_runs, 2);
  EXPECT_THAT(step->words, HasSubstr("18 runs of the 20"));
}

TEST_F(Gated, OtherMachinesAreNoHistory) {
  nights_.AddSeveral(kEnoughNights);
  nights_.Add("tonight", [](const Point& point) {
    RunResult result = Timed(point, testing::ThreeRuns(300));
    result.environment["cpu"] = "another processor";
    return result;
  });
  const Gate gate = GateOf("tonight");
  EXPECT_EQ(gate.answer, kInconclusive);
  EXPECT_THAT(gate.findings[0].words, HasSubstr("0 runs of the 20 that a baseline takes, 21 on other machines"));
}

TEST_F(Gated, MemoryThatGrewHasRegressed) {
  const auto peak = [&](int64_t bytes) {
    return [bytes](const Point& point) {
      RunResult result = Timed(point, testing::ThreeRuns(100));
      result.memory.rss_peak_bytes = bytes;
      return result;
    };
  };
  for (int i = 1; i <= kEnoughNights; ++i) nights_.Add("night-" + std::to_string(i), peak(1'000'000'000));
  nights_.Add("night-grown", peak(1'100'000'000));
  EXPECT_EQ(GateOf("night-grown").answer, kInconclusive) << "a suspect first";
  nights_.Add("tonight", peak(1'100'000'000));
  const Gate gate = GateOf("tonight");
  EXPECT_EQ(gate.answer, kRegressed) << "two nights, one after the other";
  EXPECT_EQ(GateExitCode(gate.answer), 1);
  EXPECT_EQ(gate.findings[0].metric, kPeakMemory);
  EXPECT_NEAR(*gate.findings[0].change, 0.1, 1e-9);
  EXPECT_NEAR(*gate.findings[0].detectable, 0.0671, 1e-4) << "64 MiB of it";
  nights_.Add("later", peak(1'060'000'000));
  EXPECT_EQ(GateOf("later").answer, kPass);
  nights_.Add("night-much-more", peak(1'200'000'000));
  EXPECT_EQ(GateOf("night-much-more").answer, kRegressed) << "at once";
}

TEST_F(Gated, MemoryThatDiffersFromNightToNightIsHeldToThat) {
  const auto peak = [&](int64_t bytes) {
    return [bytes](const Point& point) {
      RunResult result = Timed(point, testing::ThreeRuns(100));
      result.memory.rss_peak_bytes = bytes;
      return result;
    };
  };
  for (int i = 1; i <= kEnoughNights; ++i) {
    nights_.Add("night-" + std::to_string(i), peak(i % 2 == 0 ? 1'000'000'000 : 1'100'000'000));
  }
  nights_.Add("tonight", peak(1'250'000'000));
  const Gate gate = GateOf("tonight");
  const GateFinding* memory = Find(gate, "seed=0", kPeakMemory);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->answer, kPass);
  EXPECT_GT(*memory->detectable, 0.1);
}

TEST_F(Gated, SixNightsDecideWhatNoneDoesByItself) {
  nights_.AddSeveral(12);
  for (int i = 1; i <= 6; ++i) {
    const std::string name = "night-slow-" + std::to_string(i);
    nights_.Add(name, 103);
    const Gate gate = GateOf(name);
    EXPECT_EQ(gate.answer, i < 5 ? kInconclusive : kRegressed) << name << ": of two cells five nights are enough";
    nights_.LeaveOut(name);
    if (i < 6) continue;
    EXPECT_EQ(gate.findings[0].since, "night-slow-1");
    EXPECT_NEAR(*gate.findings[0].nights_change, 0.03, 1e-3);
    EXPECT_TRUE(gate.findings[0].suspect) << "turns may still decide otherwise";
  }
  nights_.Add("night-mended", 100);
  EXPECT_EQ(GateOf("night-mended").answer, kPass) << "tonight has to be slow, too";
}

TEST_F(Gated, ALargeSlowdownIsRedTheSameNight) {
  nights_.AddSeveral(kEnoughNights);
  AddTonight([](const Point& point) { return Timed(point, testing::ThreeRuns(300)); });
  const Gate gate = GateOf("tonight");
  EXPECT_EQ(gate.answer, kRegressed);
  EXPECT_TRUE(gate.findings[0].suspect);
  EXPECT_THAT(gate.findings[0].words, HasSubstr("more than 10 %"));
}

TEST_F(Gated, ALostPointHidesNoRegression) {
  nights_.AddSeveral(kEnoughNights);
  nights_.Add("tonight", [&](const Point& point) {
    return point.id == nights_.points()[0].id ? samples::Result(point.id, InfrastructureReason::kNode)
                                              : Timed(point, testing::ThreeRuns(300));
  });
  const Gate gate = GateOf("tonight");
  EXPECT_EQ(gate.answer, kRegressed);
  EXPECT_EQ(GateCounts(gate), "1 regressed, 1 missing, 1 pass");
}

TEST_F(Gated, MemoryIsHeldToWhatCountsTheSame) {
  const auto peak = [&](const char* kind, int64_t device, int64_t reserved) {
    return [=](const Point& point) {
      RunResult result = Timed(point, testing::ThreeRuns(100));
      result.memory.device_peak_bytes = device;
      result.memory.device_peak_kind = kind;
      result.memory.device_reserved_bytes = reserved;
      return result;
    };
  };
  for (int i = 1; i <= kEnoughNights; ++i) {
    nights_.Add("night-" + std::to_string(i), peak("allocated", 1'000'000'000, 2'000'000'000));
  }
  nights_.Add("tonight", peak("NVML", 3'000'000'000, 2'000'000'000));
  EXPECT_EQ(GateOf("tonight").answer, kPass) << "NVML counts more than what is allocated";
  nights_.Add("later", peak("NVML", 3'000'000'000, 2'500'000'000));
  const Gate gate = GateOf("later");
  EXPECT_EQ(gate.answer, kRegressed);
  EXPECT_THAT(gate.findings[0].words, HasSubstr("(reserved)"));
}

TEST_F(Gated, AFailureIsASuspectUntilItFailsAgain) {
  nights_.AddSeveral(1);
  const auto fails = [](const Point& point) {
    RunResult result = samples::Result(point.id, RunStatus::kOomHost);
    result.environment.clear();  // it names no machine
    return result;
  };
  AddTonight(fails);
  Gate gate = GateOf("tonight");
  EXPECT_EQ(gate.answer, kInconclusive);
  EXPECT_EQ(gate.findings[0].metric, kResult);
  EXPECT_TRUE(gate.findings[0].suspect);
  EXPECT_EQ(gate.findings[0].words, "failed once, a suspect until it is run again: out of memory");

  GateSides sides = nights_.Sides("tonight");
  const auto failed =
      std::ranges::find_if(sides.head, [](const auto& cell) { return !cell.measurements[0].failure.empty(); });
  EXPECT_EQ(failed->measurements[0].failures, 1);
  failed->measurements[0].failures = 2;
  gate = MakeGate(sides);
  EXPECT_EQ(gate.answer, kRegressed);
  EXPECT_EQ(gate.findings[0].words, "fails now, and when it was run again: out of memory");

  nights_.Add("night-2", [&](const Point& point) {
    return point.id == nights_.points()[0].id ? fails(point) : Timed(point, testing::ThreeRuns(100));
  });
  nights_.Add("night-3", [&](const Point& point) {
    return point.id == nights_.points()[0].id ? fails(point) : Timed(point, testing::ThreeRuns(100));
  });
  gate = GateOf("night-3");
  EXPECT_EQ(gate.answer, kRegressed);
  EXPECT_EQ(gate.findings[0].words, "fails, as the time before: out of memory");
}

// Accepted changes are subtracted: earlier measurements count as if they had them.
TEST_F(Gated, SubtractsAcceptedChanges) {
  nights_.AddSeveral(kEnoughNights);
  nights_.Add("night-8", 105);
  const Gate worse = GateOf("night-8");
  const GateFinding& found = *Find(worse, "seed=0", kStepTime);
  ASSERT_TRUE(found.suspect);
  ASSERT_TRUE(found.acceptable);
  EXPECT_GT(*found.acceptable, 0.05);
  EXPECT_LT(*found.acceptable, 0.06);
  AcceptedChange change;
  change.point_id = found.point_id;
  change.setup = found.setup;
  change.night = "night-8";
  change.reason = "a check";
  change.author = "ada";
  change.since = {"night-8"};
  for (int i = 1; i <= kEnoughNights; ++i) change.before.insert("night-" + std::to_string(i));
  change.up = {{kStepTime, *found.acceptable}, {kPinnedStepTime, *found.acceptable}};
  const auto gate_of = [&](const std::string& head) {
    GateSides sides = nights_.Sides(head, "night-1");
    sides.accepted = {change};
    ShiftToAccepted(sides);
    Gate gate = MakeGate(sides);
    NameTakenChanges(gate);
    return gate;
  };
  nights_.Add("night-9", 105.5);
  Gate gate = gate_of("night-9");
  for (const GateMetric metric : {kStepTime, kPinnedStepTime}) {
    EXPECT_EQ(Find(gate, "seed=0", metric)->answer, kPass);
    EXPECT_THAT(Find(gate, "seed=0", metric)->words, HasSubstr(" % accepted of night-8 by ada: a check"));
    EXPECT_TRUE(Find(gate, "seed=1", metric)->suspect) << "another cell";
    EXPECT_EQ(Find(gate, "seed=1", metric)->words.find("accepted"), std::string::npos);
  }
  nights_.Add("night-10", 108.2);
  gate = gate_of("night-10");
  EXPECT_TRUE(Find(gate, "seed=0", kStepTime)->suspect) << "3 % more than what was accepted";
  EXPECT_TRUE(Find(gate, "seed=0", kPinnedStepTime)->suspect);
}

TEST_F(Gated, AFailureThatWasAlwaysOneIsNoRegression) {
  const auto one_fails = [&](const Point& point) {
    return point.id == nights_.points()[0].id ? samples::Result(point.id, RunStatus::kOomHost)
                                              : Timed(point, testing::ThreeRuns(100));
  };
  for (int i = 1; i <= kEnoughNights; ++i) nights_.Add("night-" + std::to_string(i), one_fails);
  nights_.Add("tonight", one_fails);
  const Gate gate = GateOf("tonight");
  EXPECT_EQ(gate.answer, kPass);
  EXPECT_EQ(gate.findings[0].answer, kFails);
  EXPECT_EQ(GateCounts(gate), "1 failing as before, 2 pass");
}

TEST_F(Gated, AFailureThatWasRunAgainAndWentWellIsNone) {
  nights_.AddSeveral(kEnoughNights);
  GateSides sides = nights_.Sides("night-7");
  MeasuredCell failed = sides.head[0];
  failed.machine.clear();
  failed.measurements = {MeasuredRuns{}};
  failed.measurements[0].failure = "crashed";
  failed.measurements[0].ended_unix_ns = sides.head[0].measurements[0].ended_unix_ns - 1;
  sides.head.insert(sides.head.begin(), failed);
  EXPECT_NE(MakeGate(sides).answer, kRegressed);
  sides.head[0].measurements[0].ended_unix_ns += 2;
  EXPECT_EQ(MakeGate(sides).answer, kInconclusive) << "it is the last word";
}

TEST_F(Gated, APointLostToTheInfrastructureIsMissingAndNoPass) {
  nights_.AddSeveral(kEnoughNights);
  AddTonight([](const Point& point) { return samples::Result(point.id, InfrastructureReason::kNode); });
  const Gate gate = GateOf("tonight");
  EXPECT_EQ(gate.answer, kMissing);
  EXPECT_EQ(GateExitCode(gate.answer), 3);
  EXPECT_EQ(gate.findings[0].point, "seed=0");
  EXPECT_EQ(gate.findings[0].words, "no result in head: not measured (its node failed)");
  EXPECT_EQ(GateCounts(gate), "1 missing, 2 pass");
  store::SweepRecord sweep = samples::Sweep("test");
  sweep.measured_as.campaign = "tonight";
  store_.PutSweep(sweep, std::vector<Point>(nights_.points().begin() + 1, nights_.points().end()));
  EXPECT_EQ(GateCounts(GateOf("tonight")), "2 pass") << "what a sweep has no more is not missing, though it was lost";
}

TEST_F(Gated, APointOfTheSweepWithoutAMeasurementIsMissing) {
  nights_.AddSeveral(kEnoughNights);
  nights_.Add("tonight", 100);
  store::SweepRecord sweep = samples::Sweep("test");
  sweep.measured_as.campaign = "tonight";
  store_.PutSweep(sweep, testing::FewStepPoints(3));
  const Gate gate = GateOf("tonight");
  EXPECT_EQ(gate.answer, kMissing);
  EXPECT_EQ(gate.findings[0].point, "seed=2");
  store_.PutSweep(sweep, testing::FewStepPoints(1));
  EXPECT_EQ(GateOf("tonight").answer, kPass) << "what a sweep has no more is not expected";
}

TEST_F(Gated, WithoutASweepThePointsOfTheBaselineAreExpected) {
  nights_.AddSeveral(kEnoughNights);
  GateSides sides = nights_.Sides("night-7");
  EXPECT_TRUE(sides.expected.is_whole);
  sides.expected = {};
  sides.head.pop_back();
  const Gate gate = MakeGate(sides);
  EXPECT_EQ(gate.answer, kMissing);
  EXPECT_EQ(gate.findings[0].words, "no result in head: the baseline has it");
}

TEST_F(Gated, NothingMeasuredIsNeverGreen) {
  EXPECT_EQ(MakeGate({}).answer, kMissing);
  EXPECT_EQ(MakeGate({}).findings.size(), 1U);
  nights_.AddSeveral(1);
  nights_.Add("tonight", [](const Point& point) { return samples::Result(point.id, InfrastructureReason::kNode); });
  EXPECT_EQ(GateExitCode(GateOf("tonight").answer), 3);
  EXPECT_EQ(GateCounts(GateOf("tonight")), "2 missing") << "its points, and nothing else";
  for (const char* campaign : {"bad", "as-bad"}) {
    nights_.Add(campaign, [](const Point& point) { return samples::Result(point.id, RunStatus::kCrashed); });
  }
  GateSides sides = nights_.Sides("as-bad");
  sides.baseline = nights_.Sides("bad").head;
  EXPECT_EQ(MakeGate(sides).answer, kMissing) << "all that fails as before is nothing measured";
}

TEST_F(Gated, ASlowCreepIsSeenAgainstWhatIsPinned) {
  for (int i = 1; i <= 3 * kEnoughNights; ++i) {
    nights_.Add("night-" + std::to_string(i), 100 * (1 + 0.002 * i));
  }
  const std::string head = "night-" + std::to_string(3 * kEnoughNights);
  const Gate gate = GateOf(head, "night-1");
  const GateFinding* rolling = Find(gate, "seed=0", kStepTime);
  ASSERT_NE(rolling, nullptr);
  EXPECT_EQ(rolling->answer, kRegressed) << "the nights together see it, too";
  EXPECT_FALSE(rolling->nights_chance.value_or(1) > 0.01);
  const GateFinding* pinned = Find(gate, "seed=0", kPinnedStepTime);
  ASSERT_NE(pinned, nullptr);
  EXPECT_TRUE(pinned->suspect);
  EXPECT_NEAR(*pinned->change, 0.04, 0.002);
  EXPECT_EQ(pinned->answer, kRegressed) << "six nights one after another";
  EXPECT_NE(Find(gate, "seed=0", kPinnedPeakMemory), nullptr);
  EXPECT_EQ(Find(GateOf(head), "seed=0", kPinnedStepTime), nullptr);
}

TEST_F(Gated, WithoutStepTimesNothingIsPassed) {
  nights_.AddSeveral(kEnoughNights);
  AddTonight([](const Point& point) {
    RunResult result = Timed(point, {});
    result.step_ns = {};
    return result;
  });
  const Gate gate = GateOf("tonight");
  const GateFinding* step = Find(gate, "seed=0", kStepTime);
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->answer, kInconclusive);
}

TEST_F(Gated, APassThatSeesTooLittleIsNone) {
  nights_.AddSeveral(kEnoughNights);
  nights_.Add("tonight", 100);
  Gate gate = GateOf("tonight");
  const double detectable = *Find(gate, "seed=0", kStepTime)->detectable;
  DemandDetection(gate, detectable + 0.001);
  EXPECT_EQ(gate.answer, kPass);
  DemandDetection(gate, detectable - 0.001);
  EXPECT_EQ(gate.answer, kInconclusive);
  EXPECT_FALSE(gate.findings[0].suspect);
  EXPECT_EQ(GateCounts(gate), "2 inconclusive, 2 pass") << "memory sees what it sees";
}

TEST_F(Gated, CellsOfOneNameAreToldApart) {
  GateSides sides;
  for (const char* machine : {"one", "another"}) {
    MeasuredCell cell{"id", R"({"model": "m"})", "{}", machine, {MeasuredRuns{}}};
    sides.head.push_back(cell);
  }
  std::vector<std::string> points;
  for (const GateFinding& finding : MakeGate(sides).findings) points.push_back(finding.point);
  EXPECT_THAT(points, ElementsAre("model=m, on one", "model=m, on another"));
  sides.head[1].machine = "one";
  sides.head[1].setup = R"({"cpus":2})";
  EXPECT_EQ(MakeGate(sides).findings[1].point, R"(model=m, setup {"cpus":2})");
}

TEST_F(Gated, AnswersAreFromGoodToBad) {
  Gate gate;
  for (const GateAnswer answer : {kPass, kRegressed, kFails, kMissing, kInconclusive}) {
    gate.findings.emplace_back().answer = answer;
  }
  Conclude(gate);
  EXPECT_EQ(gate.answer, kRegressed);
  std::vector<GateAnswer> answers;
  for (const GateFinding& finding : gate.findings) answers.push_back(finding.answer);
  EXPECT_THAT(answers, ElementsAre(kRegressed, kMissing, kInconclusive, kFails, kPass));
  EXPECT_EQ(GateCounts(gate), "1 regressed, 1 missing, 1 inconclusive, 1 failing as before, 1 pass");
}

}  // namespace
}  // namespace ridgeline::regress
