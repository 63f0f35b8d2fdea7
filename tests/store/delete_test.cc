// What a store deletes at a person's request, and what stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "store/store.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DeleteTest : public testing::Test {
 protected:
  // A job that measures these points for the sweep's current key, with one result each.
  void Measure(const std::string& key, const std::string& sweep, const std::vector<Point>& points) {
    JobRecord job = samples::Job(key, sweep, points);
    job.measured_as = store_.Progress(sweep).sweep.measured_as;
    store_.RecordIntents({&job, 1});
    for (const Point& point : points) {
      RunResult result = samples::Result(point.id);
      result.ended_unix_ns = ++ended_;
      const NewResult added{result, key, store_.Attempts(sweep).at(point.id)};
      store_.AddResults({&added, 1});
    }
    store_.SetJobState(key, JobRecord::State::kEnded, {}, 1);
  }
  int64_t Count(const std::string& sql) { return std::get<int64_t>(store_.Query(sql).rows.at(0).at(0)); }
  std::string Refusal(Deletion::What what, const std::string& name) {
    try {
      store_.Delete(what, name, false);
    } catch (const Error& e) {
      return e.message();
    }
    return "";
  }

  TempDir dir_;
  Store store_ = Store::Open(dir_ / "a.db", Store::Mode::kReadWrite);
  const std::vector<Point> points_ = samples::Points(3);
  int64_t ended_ = 100;
};

TEST_F(DeleteTest, ASweepGoesWithoutWhatAnotherHasToo) {
  store_.PutSweep(samples::Sweep("a"), std::vector(points_.begin(), points_.begin() + 2));
  store_.PutSweep(samples::Sweep("b"), std::vector(points_.begin() + 1, points_.end()));
  Measure("rl-1", "a", {points_[0]});
  Measure("rl-2", "a", {points_[1]});
  Measure("rl-3", "b", {points_[2]});
  const Deletion would = store_.Delete(Deletion::What::kSweep, "a", true);
  EXPECT_EQ(would.results, 1);
  EXPECT_EQ(would.jobs, 1);
  EXPECT_EQ(Count("SELECT count(*) FROM results"), 3) << "which was to be counted alone";
  store_.Delete(Deletion::What::kSweep, "a", false);
  EXPECT_EQ(Count("SELECT count(*) FROM sweeps"), 1);
  EXPECT_EQ(Count("SELECT count(*) FROM results"), 2);
  EXPECT_EQ(Count("SELECT count(*) FROM jobs WHERE sweep = 'b'"), 2);
  EXPECT_EQ(Count("SELECT count(*) FROM points"), 2);
  EXPECT_THAT(store_.FinishedPoints("b"), ElementsAre(points_[1].id, points_[2].id));
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(DeleteTest, ARunIsMeasuredAnewUnderANewKey) {
  store_.PutSweep(samples::Sweep("a"), points_);
  Measure("rl-1", "a", points_);
  const std::string number =
      std::to_string(Count("SELECT number FROM results WHERE point_id = '" + points_[1].id + "'"));
  EXPECT_EQ(store_.Delete(Deletion::What::kRun, number, false).results, 1);
  EXPECT_EQ(store_.Delete(Deletion::What::kRun, points_[2].id.substr(0, 8), true).results, 1) << "a point's id";
  EXPECT_EQ(store_.Delete(Deletion::What::kRun, points_[2].id + ".103", false).results, 1);
  EXPECT_THAT(store_.FinishedPoints("a"), ElementsAre(points_[0].id));
  EXPECT_EQ(store_.Attempts("a").at(points_[1].id), 1) << "the next is the second";
  EXPECT_THAT(store_.Check(), IsEmpty());
  EXPECT_THAT(Refusal(Deletion::What::kRun, number), HasSubstr("has no such measurements"));
  EXPECT_THAT(Refusal(Deletion::What::kRun, "1x"), HasSubstr("has no such measurements"));
  EXPECT_THAT(Refusal(Deletion::What::kRun, "????????"), HasSubstr("has no such measurements"));
}

TEST_F(DeleteTest, ACampaignGoesFromEverySweep) {
  SweepRecord sweep = samples::Sweep("a");
  store_.PutSweep(sweep, points_);
  Measure("rl-1", "a", points_);
  sweep.measured_as.campaign = "second";
  store_.PutSweep(sweep, points_);
  Measure("rl-2", "a", points_);
  EXPECT_EQ(store_.Delete(Deletion::What::kCampaign, "default", false).results, 3);
  EXPECT_EQ(Count("SELECT count(*) FROM results WHERE campaign = 'second'"), 3);
  EXPECT_EQ(Count("SELECT count(*) FROM jobs"), 1);
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(DeleteTest, KeepsSweepsWithLiveJobs) {
  store_.PutSweep(samples::Sweep("a"), points_);
  JobRecord job = samples::Job("rl-1", "a", points_);
  job.measured_as = store_.Progress("a").sweep.measured_as;
  store_.RecordIntents({&job, 1});
  EXPECT_THAT(Refusal(Deletion::What::kSweep, "a"), HasSubstr("1 job of 'a' has not ended yet"));
  EXPECT_THAT(Refusal(Deletion::What::kSweep, "b"), HasSubstr("has no such measurements: 'b'"));
  EXPECT_EQ(Count("SELECT count(*) FROM jobs"), 1);
}

}  // namespace
}  // namespace ridgeline::store
