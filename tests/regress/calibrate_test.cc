#include "regress/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "regress/nightly.h"

namespace ridgeline::regress {
namespace {

using ::testing::HasSubstr;

std::vector<double> RunsOfMachine(size_t count, double sigma, double disturbed = 0) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<double> runs;
  while (runs.size() < count) {
    runs.push_back(std::log(1e8) + sigma * normal(random) + (uniform(random) < disturbed ? 0.3 : 0));
  }
  return runs;
}

CalibratedCell OneSession(const std::vector<double>& runs) { return Calibrate(R"({"model": "m"})", {{runs}}); }

// Each session has a level of its own.
std::vector<SessionRuns> SessionsOfMachine(size_t count, double runs_sigma, double sessions_sigma, uint64_t seed = 7) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<SessionRuns> sessions(count);
  for (SessionRuns& runs : sessions) {
    const double level = std::log(1e8) + sessions_sigma * normal(random);
    while (runs.size() < RunsOfNights(2)) runs.push_back(level + runs_sigma * normal(random));
  }
  return sessions;
}

TEST(Calibration, CountsNightsOfAMachineThatIsStill) {
  const CalibratedCell cell = OneSession(RunsOfMachine(RunsOfNights(200), 0.01));
  EXPECT_EQ(cell.nights, 200);
  EXPECT_EQ(cell.verdicts, 25);
  EXPECT_NEAR(cell.sigma, 0.01, 0.001);
  EXPECT_NEAR(cell.detectable, 0.0249, 0.003) << "3.84 sigma sqrt(1/3 + 1.57/20)";
  EXPECT_LE(cell.suspects, 4);
  EXPECT_EQ(cell.confirmed, 0);
}

TEST(Calibration, TellsOfAMachineThatIsNot) {
  const CalibratedCell cell = OneSession(RunsOfMachine(RunsOfNights(200), 0.004, 0.3));
  EXPECT_GT(cell.suspects, 20) << "two disturbed runs of three";
  EXPECT_THAT(CalibrationWords({&cell, 1}), HasSubstr(std::to_string(cell.suspects) + " of 200 nights"));
}

TEST(Calibration, FewRunsGiveNoNights) {
  const CalibratedCell cell = OneSession(RunsOfMachine(kHistoryRuns + 2, 0.01));
  EXPECT_EQ(cell.nights, 0);
  EXPECT_EQ(cell.verdicts, 0);
  EXPECT_EQ(CalibrationWords({&cell, 1}), "");
  EXPECT_EQ(CellText(CalibrationTable({&cell, 1}).rows.at(0).at(0)), "model=m");
}

TEST(Calibration, OneSessionKnowsNoVarianceBetweenSessions) {
  const CalibratedCell cell = Calibrate(R"({"model": "m"})", SessionsOfMachine(1, 0.005, 0.01));
  EXPECT_FALSE(cell.between);
  EXPECT_THAT(CalibrationWords({&cell, 1}), HasSubstr("One session knows no variance between sessions"));
  EXPECT_EQ(CellText(CalibrationTable({&cell, 1}).rows.at(0).at(4)), "");
}

TEST(Calibration, SessionsTellHowTheyDiffer) {
  const CalibratedCell cell = Calibrate(R"({"model": "m"})", SessionsOfMachine(200, 0.005, 0.01));
  EXPECT_EQ(cell.sessions, 200);
  EXPECT_NEAR(cell.sigma, 0.005, 0.0003) << "within sessions alone";
  ASSERT_TRUE(cell.between);
  EXPECT_NEAR(*cell.between, 0.01, 0.001);
  EXPECT_GT(cell.most_between, *cell.between);
  EXPECT_LT(cell.most_between, 0.0125);
  EXPECT_NEAR(cell.detectable, std::expm1(3.8416 * std::hypot(0.01, 0.005 / std::sqrt(3)) * std::sqrt(1 + 1.5708 / 20)),
              0.004);
  EXPECT_LE(cell.suspects, 8) << "of 400 nights, each held to its own session";
  const CalibratedCell still = Calibrate(R"({"model": "m"})", SessionsOfMachine(200, 0.005, 0));
  EXPECT_LT(*still.between, 0.0007);
  EXPECT_NEAR(still.detectable, std::expm1(3.8416 * 0.005 * std::sqrt(1.0 / 3 + 1.5708 / 20)), 0.001)
      << "as one session does";
}

// A machine whose sessions differ makes suspects of nights that no session by itself shows.
TEST(Calibration, SessionsAreHeldToTheOthers) {
  int64_t apart = 0;
  int64_t suspects = 0;
  int64_t sessions = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const CalibratedCell cell = Calibrate(R"({"model": "m"})", SessionsOfMachine(3, 0.003, 0.03, seed));
    apart += cell.apart;
    suspects += cell.suspects;
    sessions += cell.sessions;
    EXPECT_EQ(CellText(CalibrationTable({&cell, 1}).rows.at(0).at(7)), std::to_string(cell.apart) + " of 3");
  }
  EXPECT_GT(apart, sessions / 10);
  EXPECT_LE(suspects, 4);
}

// An interval of 95 % is above in about 95 of 100 cases.
TEST(Calibration, TheMostThatSessionsDifferByIsSo) {
  int above = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    if (Calibrate(R"({"model": "m"})", SessionsOfMachine(4, 0.005, 0.01, seed)).most_between >= 0.01) ++above;
  }
  EXPECT_NEAR(above, 950, 25);
}

TEST(Calibration, ASessionThatWasCutShortDoesNotCount) {
  std::vector<SessionRuns> sessions = SessionsOfMachine(2, 0.005, 0.01);
  sessions[1].resize(kHistoryRuns - 1);
  const CalibratedCell cell = Calibrate(R"({"model": "m"})", sessions);
  EXPECT_EQ(cell.sessions, 1);
  EXPECT_FALSE(cell.between);
}

TEST(Calibration, CampaignsTellSessionsAndBuilds) {
  MeasuredCell cell{"id", R"({"model": "m"})", "", "here", {}};
  for (int64_t session = 1; session <= 2; ++session) {
    for (int64_t run = 1; run <= 23; ++run) {
      MeasuredRuns runs;
      runs.campaign = NameOfSession(session) + "-run-" + std::to_string(1000 + run);
      runs.commit = session == 1 ? "abc" : "def";
      runs.host = "node-" + std::to_string(session);
      runs.ended_unix_ns = (session * 100 + run) * 1'000'000'000;
      runs.log_step_times = {10 + 0.01 * static_cast<double>(session)};
      cell.measurements.push_back(runs);
    }
  }
  const std::vector<CalibratedCell> cells = CalibrateCells({&cell, 1});
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_EQ(cells[0].sessions, 2);
  EXPECT_NEAR(*cells[0].between, 0.01 / std::sqrt(2), 1e-9);
  EXPECT_THAT(CalibrationWords(cells), HasSubstr("2 builds (abc, def)"));
  const Table sessions = SessionTable({&cell, 1});
  ASSERT_EQ(sessions.rows.size(), 2U);
  EXPECT_EQ(CellText(sessions.rows[1][0]), "session-002");
  EXPECT_EQ(CellText(sessions.rows[1][1]), "1970-01-01T00:03:21Z");
  EXPECT_EQ(CellText(sessions.rows[1][3]), "node-2");
}

TEST(Calibration, AnIntervalOfARareEventIsKnown) {
  EXPECT_NEAR(MostFalseAlarms(0, 100), 1 - std::pow(0.05, 0.01), 1e-6) << "the rule of three, exactly";
  EXPECT_NEAR(MostFalseAlarms(1, 20), 0.2161, 1e-4);
  EXPECT_EQ(MostFalseAlarms(3, 3), 1);
}

}  // namespace
}  // namespace ridgeline::regress
