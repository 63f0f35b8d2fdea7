#include "regress/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "regress/nightly.h"

namespace ridgeline {
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

TEST(Calibration, CountsNightsOfAMachineThatIsStill) {
  const CalibratedCell cell = Calibrate(R"({"model": "m"})", RunsOfMachine(RunsOfNights(200), 0.01));
  EXPECT_EQ(cell.nights, 200);
  EXPECT_EQ(cell.verdicts, 25);
  EXPECT_NEAR(cell.sigma, 0.01, 0.001);
  EXPECT_NEAR(cell.detectable, 0.0249, 0.003) << "3.84 sigma sqrt(1/3 + 1.57/20)";
  EXPECT_LE(cell.suspects, 4);
  EXPECT_EQ(cell.confirmed, 0);
}

TEST(Calibration, TellsOfAMachineThatIsNot) {
  const CalibratedCell cell = Calibrate("{}", RunsOfMachine(RunsOfNights(200), 0.004, 0.3));
  EXPECT_GT(cell.suspects, 20) << "two disturbed runs of three";
  EXPECT_THAT(CalibrationWords({&cell, 1}), HasSubstr(std::to_string(cell.suspects) + " of 200 nights"));
}

TEST(Calibration, OfFewRunsHasNoNights) {
  const CalibratedCell cell = Calibrate(R"({"model": "m"})", RunsOfMachine(kHistoryRuns + 2, 0.01));
  EXPECT_EQ(cell.nights, 0);
  EXPECT_EQ(cell.verdicts, 0);
  EXPECT_EQ(CalibrationWords({&cell, 1}), "");
  EXPECT_EQ(CellText(CalibrationTable({&cell, 1}).rows.at(0).at(0)), "model=m");
}

TEST(Calibration, AnIntervalOfARareEventIsKnown) {
  EXPECT_NEAR(MostFalseAlarms(0, 100), 1 - std::pow(0.05, 0.01), 1e-6) << "the rule of three, exactly";
  EXPECT_NEAR(MostFalseAlarms(1, 20), 0.2161, 1e-4);
  EXPECT_EQ(MostFalseAlarms(3, 3), 1);
}

}  // namespace
}  // namespace ridgeline
