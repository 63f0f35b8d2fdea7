#include "regress/measurements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/regress/nights.h"

namespace ridgeline::regress {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class Measurements : public ::testing::Test {
 protected:
  std::vector<std::string> CampaignsOf(const MeasurementChoice& choice) {
    std::vector<std::string> campaigns;
    for (const MeasuredCell& cell : ReadMeasurements(store_, choice)) {
      for (const MeasuredRuns& runs : cell.measurements) campaigns.push_back(runs.campaign);
    }
    return campaigns;
  }

  TempDir dir_;
  store::Store store_ = store::Store::Open(dir_.path() / "ridgeline.db", store::Store::Mode::kReadWrite);
  testing::Nights nights_{store_, 1};
};

TEST_F(Measurements, AreTheOldestFirst) {
  nights_.AddSeveral(3);
  EXPECT_THAT(CampaignsOf({}), ElementsAre("night-1", "night-2", "night-3"));
  MeasurementChoice newest;
  newest.newest = true;
  EXPECT_THAT(CampaignsOf(newest), ElementsAre("night-3"));
}

TEST_F(Measurements, DistinguishesCampaignsThatBeginAlike) {
  nights_.AddSeveral(2);
  nights_.Add("change-17", 100);
  MeasurementChoice choice;
  choice.campaign = "night-*";
  EXPECT_THAT(CampaignsOf(choice), ElementsAre("night-1", "night-2"));
  choice.campaign = "night-1";
  EXPECT_THAT(CampaignsOf(choice), ElementsAre("night-1"));
  choice.campaign = "night";
  EXPECT_THAT(CampaignsOf(choice), ElementsAre());
}

TEST_F(Measurements, ExcludedRunsTakeNoPlaceInTheWindow) {
  nights_.AddSeveral(4);
  const MeasuredCell cell = ReadMeasurements(store_, {}).at(0);
  MeasurementChoice choice;
  choice.most = 2;
  choice.left_out = {{"night-4", {}, {}}, {"night-2", cell.point_id, cell.setup}, {"night-1", "another", cell.setup}};
  EXPECT_THAT(CampaignsOf(choice), ElementsAre("night-1", "night-3"));
}

TEST_F(Measurements, TheLatestThatEndedWellAreNotCrowdedOutByFailures) {
  nights_.AddSeveral(3);
  for (const char* night : {"night-4", "night-5"}) {
    nights_.Add(night, [](const Point& point) {
      RunResult result = samples::Result(point.id, RunStatus::kCrashed);
      result.environment = testing::Timed(point, {1}).environment;
      return result;
    });
  }
  MeasurementChoice choice;
  choice.most = 2;
  EXPECT_THAT(CampaignsOf(choice), ElementsAre("night-2", "night-3", "night-4", "night-5"));
  choice.most = 1;
  EXPECT_THAT(CampaignsOf(choice), ElementsAre("night-3", "night-5"));
}

TEST_F(Measurements, BeforeAMomentAreThoseThatHadEnded) {
  nights_.AddSeveral(3);
  MeasurementChoice choice;
  choice.before_unix_ns = ReadMeasurements(store_, {})[0].measurements[2].ended_unix_ns;
  EXPECT_THAT(CampaignsOf(choice), ElementsAre("night-1", "night-2"));
}

TEST_F(Measurements, SayTheirBuildAndTheirHost) {
  nights_.Add("night-1", [](const Point& point) {
    RunResult result = testing::Timed(point, {100, 101}, std::string(40, 'a'));
    result.environment["hostname"] = "node-7";
    result.memory.device_peak_bytes = 5000;
    return result;
  });
  nights_.Add("night-2", 100);
  const MeasuredCell cell = ReadMeasurements(store_, {}).at(0);
  EXPECT_EQ(cell.measurements[0].commit, std::string(40, 'a'));
  EXPECT_EQ(cell.measurements[0].host, "node-7");
  EXPECT_EQ(cell.measurements[0].device_peak_bytes, 5000);
  EXPECT_THAT(cell.measurements[0].log_step_times, SizeIs(2));
  EXPECT_EQ(cell.measurements[1].commit, "night-2") << "of a build that nothing says";
}

TEST_F(Measurements, NameTheNodeThatTheSchedulerReports) {
  nights_.Add("night-1", [](const Point& point) {
    RunResult result = testing::Timed(point, {100});
    result.environment["hostname"] = "a-pod";
    return result;
  });
  store_.SetJobState("job-night-1", store::JobRecord::State::kEnded, {{"node", "node-7"}}, 40);
  EXPECT_EQ(ReadMeasurements(store_, {}).at(0).measurements.at(0).host, "node-7");
}

// How strongly a run's steps depend on each other, and how long it takes to become steady.
TEST_F(Measurements, HaveTheirWarmUpAndWhatTheirStepsAreWorth) {
  const auto slow_to_start = [](const Point& point) {
    RunResult result = samples::Result(point.id);
    result.step_ns.all_ns = {900'000'000};
    // After 10 slower steps, a level that changes every 5 steps.
    for (int64_t step = 0; step < 60; ++step) {
      result.step_ns.all_ns.push_back(step < 10 ? 200'000'000 : 100'000'000 + (step / 5 % 2) * 1'000'000);
    }
    return result;
  };
  std::vector<Point> points = testing::FewStepPoints(1);
  points[0].spec.steps = 60;
  points[0].id = PointId(points[0].spec);
  testing::Measure(store_, "night-1", points, slow_to_start);
  const MeasuredRuns runs = ReadMeasurements(store_, {}).at(0).measurements.at(0);
  EXPECT_GE(runs.warm_up_steps, 10);
  EXPECT_LT(runs.warm_up_steps, 20);
  EXPECT_GT(runs.effective_steps, 1);
  EXPECT_LT(runs.effective_steps, 40) << "of 50 that take after each other";
}

}  // namespace
}  // namespace ridgeline::regress
