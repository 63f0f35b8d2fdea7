#include "search/finals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "search/decide.h"
#include "search/show.h"
#include "tests/search/spaces.h"

namespace ridgeline::search {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Objective = sweep::SweepSearch::Objective;

std::vector<size_t> PointsOf(const Finals& finals) {
  std::vector<size_t> points;
  for (const Finalist& each : finals.finalists) points.push_back(each.point);
  return points;
}

TEST(Finals, AThirdOfTheRunsIsKeptForThemWhereATurnOfAllFits) {
  EXPECT_EQ(RunsForFinals(8), 0);
  EXPECT_EQ(RunsForFinals(9), 3);
  EXPECT_EQ(RunsForFinals(15), 5);
}

TEST(Finals, ThoseNearTheBestAreMeasuredAgain) {
  const Finals finals = JudgeFinals({{7, {80}}, {3, {100}}, {4, {97}}, {5, {91}}, {6, {92}}}, 9);
  EXPECT_THAT(finals.run, ElementsAre(3, 4, 6)) << "80 is far, and 91 one too many";
  EXPECT_EQ(finals.next_turn, 1);
  EXPECT_EQ(finals.turns, 0);
  EXPECT_THAT(JudgeFinals({{3, {100}}, {4, {97}}, {5, {96}}}, 2).run, ElementsAre(3, 4)) << "as many as can be run";
  for (const auto& [near, runs] : {std::pair{97, 1}, {89, 9}}) {
    const Finals none = JudgeFinals({{3, {100}}, {4, {static_cast<double>(near)}}}, runs);
    EXPECT_THAT(none.finalists, IsEmpty());
    EXPECT_THAT(none.run, IsEmpty());
  }
  EXPECT_FALSE(HasFinals({{3, {100}}, {4, {89}}}));
  EXPECT_TRUE(HasFinals({{4, {91}}, {3, {100}}}));
}

// A point that looked best by one lucky run does not win. A machine that gets slower for all points favours none.
TEST(Finals, TheMeanOfAllRunsSaysWhichIsBest) {
  const Finals finals = JudgeFinals({{0, {100, 60, 61}}, {1, {98, 66, 67}}, {2, {95, 60, 59}}}, 9);
  EXPECT_THAT(PointsOf(finals), ElementsAre(1, 0, 2));
  EXPECT_NEAR(finals.finalists[0].value, std::cbrt(98.0 * 66 * 67), 1e-9);
  EXPECT_EQ(finals.turns, 2);
  EXPECT_GT(finals.interval, 1.1) << "of the value itself that all of it is uncertain";
}

TEST(Finals, TheyEndWhereNoOtherCouldWellBeBetter) {
  const Finals clear = JudgeFinals({{0, {100, 80.1}}, {1, {92, 73.5}}, {2, {91, 72.9}}}, 9);
  EXPECT_THAT(clear.run, IsEmpty());
  EXPECT_EQ(clear.next_turn, 0);
  EXPECT_FALSE(clear.finalists[1].could_be_best);
  const Finals open = JudgeFinals({{0, {100, 80}}, {1, {92, 81}}, {2, {91, 75}}}, 9);
  EXPECT_THAT(open.run, ElementsAre(0, 1, 2));
  EXPECT_EQ(open.next_turn, 2);
  EXPECT_TRUE(open.finalists[1].could_be_best);
  EXPECT_THAT(JudgeFinals({{0, {100, 80}}, {1, {92, 81}}, {2, {91, 75}}}, 5).run, IsEmpty()) << "a turn takes three";
  const double x = 100;
  const double y = 99;
  EXPECT_THAT(JudgeFinals({{0, {x, y, x, x}}, {1, {y, x, x, y}}}, 100).run, IsEmpty()) << "three turns at most";
}

// Computed by hand. The logarithms are 0.006 and -0.002 of one point, 0.002 - w and 0.002 - w of the other. Their means
// are 0.002 and 0.002 - w. The part that these and the turns do not explain is 0.002 four times, up or down: 1.6e-5
// with one degree of freedom, whose t is 12.706.
TEST(Finals, ADifferenceIsJudgedByWhatPointsAndTurnsDoNotExplain) {
  const double half = 12.7062 * std::sqrt(1.6e-5 / 1 * 2 / 2);
  const auto could_be_best = [](double worse) {
    const double second = std::exp(0.002 - worse);
    return JudgeFinals({{0, {std::exp(0.006), std::exp(-0.002)}}, {1, {second, second}}}, 4)
        .finalists.back()
        .could_be_best;
  };
  EXPECT_TRUE(could_be_best(half - std::log(kWorthLooking) - 1e-5));
  EXPECT_FALSE(could_be_best(half - std::log(kWorthLooking) + 1e-5));
}

TEST(Finals, APointThatHadItsTurnWaitsForTheOthers) {
  const Finals finals = JudgeFinals({{0, {100, 80}}, {1, {92}}, {2, {91, 75}}}, 9);
  EXPECT_THAT(finals.run, ElementsAre(1));
  EXPECT_EQ(finals.next_turn, 1);
  EXPECT_EQ(finals.turns, 0);
}

// A search's finals. `measure` gives the value of each point and turn.
SearchDecision HeldFinals(const SearchSpace& space, int64_t budget, Trials& trials,
                          const std::function<double(size_t point, size_t turn)>& measure) {
  std::map<size_t, size_t> runs;
  return RunSearch(
      space, SearchFor(Objective::kTokensPerS, budget),
      [&](size_t point) {
        return Trial{RunStatus::kOk, measure(point, runs[point]++), 0, true};
      },
      trials);
}

TEST(Finals, ASearchEndsWithThem) {
  const SearchSpace space = GridOf({4}, 0.5, [](const auto& levels) { return 100.0 + levels[0]; });
  Trials trials;
  const SearchDecision decision = HeldFinals(space, 16, trials, [](size_t point, size_t turn) {
    return point == 2 ? (turn == 0 ? 120 : 100) : 110 + static_cast<double>(point) / 10;
  });
  EXPECT_EQ(decision.best, 3U) << "2 had one lucky run";
  EXPECT_EQ(decision.finals.turns, 3);
  EXPECT_THAT(decision.finals.finalists, SizeIs(3));
  EXPECT_EQ(decision.tried, 4);
  EXPECT_EQ(decision.paid, 4 + 3 * 3);
  const auto lines = AnswerLines(space, SearchFor(Objective::kTokensPerS, 16), decision);
  EXPECT_THAT(lines.at(0), HasSubstr("the best measured is point 3: 110 tokens/s ("));
  EXPECT_THAT(lines.at(0), HasSubstr("4 points tried, 13 runs by this search"));
  EXPECT_THAT(lines.at(1),
              HasSubstr("3 points near the best, measured 3 times more in turns: point 3: 110 tokens/s, "));
  EXPECT_THAT(lines.at(2), HasSubstr("it ended as no point is left"));
}

TEST(Finals, APointThatFailsInTheFinalsIsNotTheBest) {
  const SearchSpace space = GridOf({4}, 0.5, [](const auto& levels) { return 100.0 + levels[0]; });
  Trials trials;
  const SearchDecision decision = HeldFinals(space, 16, trials, [](size_t point, size_t turn) {
    return point == 3 && turn == 1 ? 0 : 100 + static_cast<double>(point);
  });
  EXPECT_EQ(decision.best, 2U);
  EXPECT_EQ(decision.failed_again, 1);
  EXPECT_THAT(PointsOf(decision.finals), ElementsAre(2, 1, 0)) << "the next takes its place";
  EXPECT_LE(decision.paid, 16);
  EXPECT_THAT(AnswerLines(space, SearchFor(Objective::kTokensPerS, 16), decision).at(2),
              HasSubstr("1 point failed when measured again, and so cannot be the best"));
}

TEST(Finals, IfOnePointIsFarAheadTheKeptRunsTryOtherPoints) {
  const SearchSpace space = GridOf({3, 4}, 2, [](const auto&) { return 100.0; });
  Trials trials;
  const SearchDecision decision =
      HeldFinals(space, 9, trials, [](size_t point, size_t) { return point == 0 ? 200.0 : 100.0; });
  EXPECT_EQ(decision.paid, 9);
  EXPECT_EQ(decision.tried, 9);
  EXPECT_THAT(decision.finals.finalists, IsEmpty());
}

}  // namespace
}  // namespace ridgeline::search
