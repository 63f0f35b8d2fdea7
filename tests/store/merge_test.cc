// The measurements of two stores, merged into one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/files.h"
#include "store/sqlite.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

using samples::Value;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class MergeTest : public testing::Test {
 protected:
  Store Open(const char* name) { return Store::Open(dir_ / name, Store::Mode::kReadWrite); }

  // One result of a point, in its own job.
  void Measure(Store& store, const std::string& key, const Point& point, const std::string& cpu, int64_t ended_unix_ns,
               const RunEnd& end = RunStatus::kOk) {
    JobRecord job = samples::Job(key, "s", {point});
    job.measured_as = store.Progress("s").sweep.measured_as;
    job.created_unix_ns = ended_unix_ns - 50;
    store.RecordIntents({&job, 1});
    RunResult result = samples::Result(point.id, end);
    result.started_unix_ns = ended_unix_ns - 10;
    result.ended_unix_ns = ended_unix_ns;
    result.environment["cpu"] = cpu;
    const NewResult added{result, key, store.LiveJobs().at(0).points.at(0).attempt};
    store.AddResults({&added, 1});
    store.SetJobState(key, JobRecord::State::kEnded, {}, ended_unix_ns);
  }

  static std::string Refusal(Store& store, const std::filesystem::path& other) {
    try {
      store.Merge(other);
      return "merged";
    } catch (const Error& e) {
      return e.message();
    }
  }

  TempDir dir_;
  std::vector<Point> points_ = samples::Points(4);
};

TEST_F(MergeTest, TwoMachinesResultsOfOnePointBothStayAndTheNewestSpeaks) {
  for (const bool theirs_is_newer : {true, false}) {
    const std::string name = theirs_is_newer ? "a" : "b";
    Store ours = Open((name + "1.db").c_str());
    Store theirs = Open((name + "2.db").c_str());
    ours.PutSweep(samples::Sweep("s"), std::span(points_).first(3));
    theirs.PutSweep(samples::Sweep("s"), std::span(points_).last(3));
    Measure(ours, "rl-1", points_[1], "ours", 1000);
    Measure(theirs, "rl-2", points_[1], "theirs", theirs_is_newer ? 2000 : 500);
    Measure(theirs, "rl-3", points_[3], "theirs", 2000);
    const MergeSummary merged = ours.Merge(dir_ / (name + "2.db"));
    EXPECT_EQ(merged.points, 1);
    EXPECT_EQ(merged.sweeps, 0);
    EXPECT_EQ(merged.jobs, 2);
    EXPECT_EQ(merged.results, 2);
    EXPECT_EQ(merged.known_results, 0);
    EXPECT_THAT(ours.Check(), IsEmpty());
    EXPECT_EQ(Value(ours,
                    "SELECT group_concat(machine) FROM (SELECT machine FROM measurements WHERE seed = 1 "
                    "ORDER BY machine)"),
              Cell("ours,theirs"));
    EXPECT_EQ(Value(ours, "SELECT machine FROM runs WHERE seed = 1"), Cell(theirs_is_newer ? "theirs" : "ours"));
    EXPECT_EQ(Value(ours, "SELECT machine FROM runs WHERE seed = 3"), Cell("theirs"));
    EXPECT_THAT(ours.FinishedPoints("s"), SizeIs(1)) << "the sweep is ours, without their fourth point";
    EXPECT_EQ(ours.Attempts("s").at(points_[1].id), theirs_is_newer ? 2 : 3);
    EXPECT_FALSE(std::filesystem::exists(dir_ / (name + "1.db.merge")));
  }
}

TEST_F(MergeTest, AgainChangesNothing) {
  Store ours = Open("1.db");
  Store theirs = Open("2.db");
  theirs.PutSweep(samples::Sweep("s"), points_);
  Measure(theirs, "rl-1", points_[0], "theirs", 1000);
  const NewResult skipped{samples::Result(points_[1].id, RunStatus::kSkippedPredictedOom), "", 0};
  theirs.AddResults({&skipped, 1});
  EXPECT_EQ(ours.Merge(dir_ / "2.db").results, 2);
  EXPECT_EQ(Value(ours, "SELECT count(*) FROM sweep_runs WHERE sweep = 's'"), Cell(int64_t{2}));
  const MergeSummary again = ours.Merge(dir_ / "2.db");
  EXPECT_EQ(again.results + again.jobs + again.points + again.sweeps, 0);
  EXPECT_EQ(again.known_results, 2);
  EXPECT_EQ(Value(ours, "SELECT count(*) FROM results"), Cell(int64_t{2}));
  Measure(theirs, "rl-2", points_[2], "theirs", 2000);
  EXPECT_EQ(ours.Merge(dir_ / "2.db").results, 1) << "what came since";
  EXPECT_THAT(ours.Check(), IsEmpty());
}

TEST_F(MergeTest, AnInfrastructureFailureDoesNotHideAResult) {
  Store ours = Open("1.db");
  Store theirs = Open("2.db");
  for (Store* store : {&ours, &theirs}) store->PutSweep(samples::Sweep("s"), points_);
  Measure(ours, "rl-1", points_[0], "ours", 1000);
  Measure(theirs, "rl-2", points_[0], "theirs", 2000, InfrastructureReason::kLost);
  Measure(ours, "rl-3", points_[1], "ours", 3000, InfrastructureReason::kPreempted);
  Measure(theirs, "rl-4", points_[1], "theirs", 2000);
  ours.Merge(dir_ / "2.db");
  EXPECT_THAT(ours.FinishedPoints("s"), SizeIs(2)) << "neither is paid for again";
  EXPECT_EQ(Value(ours, "SELECT machine FROM runs WHERE seed = 0"), Cell("ours"));
  EXPECT_EQ(Value(ours, "SELECT machine FROM runs WHERE seed = 1"), Cell("theirs"));
  EXPECT_EQ(Value(ours, "SELECT count(*) FROM measurements"), Cell(int64_t{2}));
  EXPECT_THAT(ours.Check(), IsEmpty());
}

TEST_F(MergeTest, TwoJobsOfOneKeyAreTwo) {
  Store ours = Open("1.db");
  Store theirs = Open("2.db");
  for (Store* store : {&ours, &theirs}) store->PutSweep(samples::Sweep("s"), points_);
  Measure(ours, "rl-1", points_[0], "ours", 1000);
  Measure(theirs, "rl-1", points_[0], "theirs", 2000);
  EXPECT_EQ(ours.Merge(dir_ / "2.db").jobs, 1);
  EXPECT_EQ(ours.Merge(dir_ / "2.db").jobs, 0);
  EXPECT_EQ(Value(ours, "SELECT count(*) FROM measurements"), Cell(int64_t{2}));
  EXPECT_EQ(Value(ours, "SELECT group_concat(key) FROM (SELECT key FROM jobs ORDER BY key)"), Cell("rl-1,rl-1.1950"));
  EXPECT_THAT(ours.Check(), IsEmpty());
}

TEST_F(MergeTest, CampaignsAndTrainersComeAlong) {
  Store ours = Open("1.db");
  Store theirs = Open("2.db");
  SweepRecord sweep = samples::Sweep("s");
  ours.PutSweep(sweep, points_);
  Measure(ours, "rl-1", points_[0], "ours", 1000);
  sweep.measured_as = {"night-2", SetupOf({"/opt/train.sh"}, 2)};
  theirs.PutSweep(sweep, points_);
  Measure(theirs, "rl-2", points_[0], "theirs", 2000);
  ours.Merge(dir_ / "2.db");
  EXPECT_EQ(Value(ours, "SELECT campaign || ' ' || trainer || ' ' || cpus FROM measurements WHERE machine = 'theirs'"),
            Cell("night-2 train.sh 2"));
  EXPECT_EQ(Value(ours, "SELECT count(*) FROM runs"), Cell(int64_t{2}));
  EXPECT_EQ(ours.Progress("s").ok, 1);
}

TEST_F(MergeTest, AnOlderStoreIsReadAndLeftAsItIs) {
  const auto old = dir_ / "old.db";
  {
    Database database(old, Database::Access::kReadWrite);
    database.Execute(ReadFile(RIDGELINE_SOURCE_DIR "/tests/store/kept/version5.sql"));
    database.Execute("UPDATE jobs SET state = 'cancelled' WHERE state = 'intent'");
  }
  const std::string before = ReadFile(old);
  Store ours = Open("1.db");
  EXPECT_EQ(ours.Merge(old).results, 5);
  EXPECT_THAT(ours.Check(), IsEmpty());
  EXPECT_EQ(ReadFile(old), before);
}

TEST_F(MergeTest, AFigureThatOneStoreAloneKeepsIsNeverLost) {
  Store ours = Open("1.db");
  ours.PutSweep(samples::Sweep("s"), points_);
  Measure(ours, "rl-1", points_[0], "ours", 100);
  {
    Store theirs = Open("2.db");
    theirs.PutSweep(samples::Sweep("s"), points_);
    Measure(theirs, "rl-2", points_[1], "theirs", 200);
  }
  {
    Database newer(dir_ / "1.db", Database::Access::kReadWrite);
    newer.Execute("ALTER TABLE results ADD COLUMN kelvin REAL; UPDATE results SET kelvin = 300.5");
  }
  EXPECT_EQ(ours.Merge(dir_ / "2.db").results, 1);
  EXPECT_EQ(Value(ours, "SELECT group_concat(ifnull(kelvin, 'none'), ' ') FROM results"), Cell("300.5 none"));
  Store theirs = Open("2.db");
  EXPECT_EQ(Refusal(theirs, dir_ / "1.db"),
            (dir_ / "1.db").string() + " has columns that " + (dir_ / "2.db").string() + " lacks: kelvin");
  EXPECT_EQ(Value(theirs, "SELECT count(*) FROM results"), Cell(int64_t{1}));
}

TEST_F(MergeTest, ARefusedMergeTakesNothing) {
  Store ours = Open("1.db");
  Store theirs = Open("2.db");
  theirs.PutSweep(samples::Sweep("s"), points_);
  const JobRecord live = samples::Job("rl-1", "s", {points_[0]});
  theirs.RecordIntents({&live, 1});
  EXPECT_THAT(Refusal(ours, dir_ / "2.db"), HasSubstr("1 live job, such as rl-1"));
  theirs.SetJobState("rl-1", JobRecord::State::kCancelled, {}, 30);
  {
    Database database(dir_ / "2.db", Database::Access::kReadWrite);
    database.Execute("UPDATE points SET seed = 77 WHERE seed = 1");
  }
  EXPECT_THAT(Refusal(ours, dir_ / "2.db"), HasSubstr("damaged"));
  WriteFile(dir_ / "3.db", "no database");
  EXPECT_THAT(Refusal(ours, dir_ / "3.db"), HasSubstr("3.db"));
  EXPECT_THAT(Refusal(ours, dir_ / "4.db"), HasSubstr("there is no database"));
  EXPECT_THAT(Refusal(ours, dir_ / "1.db"), HasSubstr("would be merged into"));
  EXPECT_EQ(Value(ours, "SELECT count(*) FROM points"), Cell(int64_t{0}));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "1.db.merge"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "4.db"));
}

}  // namespace
}  // namespace ridgeline::store
