// What a store removes, the space that it frees, and the whole store as SQL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "base/process.h"
#include "store/store.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PruneTest : public ::testing::Test {
 protected:
  PruneTest() { store_.PutSweep(samples::Sweep("s"), points_); }

  // One result of each of these points, in one job, for one campaign.
  void Measure(const std::string& key, const std::vector<Point>& points, int64_t ended_unix_ns,
               const std::string& campaign, const RunEnd& end = RunStatus::kOk) {
    JobRecord job = samples::Job(key, "s", points);
    job.measured_as = {campaign, store_.Progress("s").sweep.measured_as.setup};
    store_.RecordIntents({&job, 1});
    std::vector<NewResult> results;
    const JobRecord live = store_.LiveJobs().at(0);
    for (const JobRecord::Point& point : live.points) {
      RunResult result = samples::Result(point.id, end);
      result.ended_unix_ns = ended_unix_ns;
      result.environment["night"] = campaign;
      results.push_back({result, key, point.attempt});
    }
    store_.AddResults(results);
    store_.SetJobState(key, JobRecord::State::kEnded, {}, ended_unix_ns);
  }
  std::vector<std::string> Column(const std::string& sql) {
    std::vector<std::string> values;
    for (const auto& row : store_.Query(sql).rows) values.push_back(CellText(row.at(0)));
    return values;
  }

  TempDir dir_;
  Store store_ = Store::Open(dir_ / "ridgeline.db", Store::Mode::kReadWrite);
  std::vector<Point> points_ = samples::Points(2);
};

TEST_F(PruneTest, DeletesOldResultsAndKeepsTheLatestOfEachPoint) {
  Measure("rl-1", points_, 1'000, "night-1");
  Measure("rl-2", points_, 2'000, "night-2");
  Measure("rl-3", {points_[0]}, 3'000, "night-3");
  const Pruned pruned = store_.Prune(2'500);
  EXPECT_EQ(pruned.results, 3);  // both of the first night, one of the second
  EXPECT_EQ(pruned.jobs, 1);
  EXPECT_THAT(Column("SELECT campaign || ' ' || ended_unix_ns FROM measurements ORDER BY result"),
              ElementsAre("night-2 2000", "night-3 3000"));
  EXPECT_THAT(Column("SELECT key FROM jobs ORDER BY key"), ElementsAre("rl-2", "rl-3"));
  EXPECT_THAT(Column("SELECT environment ->> '$.night' FROM environments ORDER BY 1"),
              ElementsAre("night-2", "night-3"));
  EXPECT_THAT(store_.Check(), IsEmpty());
  EXPECT_EQ(store_.Prune(2'500).results, 0);
  store_.Vacuum();
  EXPECT_THAT(store_.Check(), IsEmpty());
  // The next attempts are numbered after the earlier ones.
  Measure("rl-4", points_, 4'000, "night-4");
  EXPECT_THAT(Column("SELECT attempt FROM results WHERE job_key = 'rl-4' ORDER BY attempt"), ElementsAre("3", "4"));
}

// An ok result that stands is the latest, even if a later attempt failed because of the infrastructure.
TEST_F(PruneTest, NeitherTheLatestNorTheLastAttemptGoes) {
  Measure("rl-1", {points_[0]}, 1'000, "night-1");
  Measure("rl-2", {points_[0]}, 2'000, "night-2", InfrastructureReason::kNode);
  Measure("rl-3", {points_[0]}, 3'000, "night-3", InfrastructureReason::kNode);
  EXPECT_EQ(store_.Prune(10'000).results, 1);
  EXPECT_THAT(Column("SELECT attempt FROM results ORDER BY attempt"), ElementsAre("1", "3"));
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(PruneTest, LeavesRunningPointsAlone) {
  Measure("rl-1", points_, 1'000, "night-1");
  JobRecord job = samples::Job("rl-2", "s", points_);
  store_.RecordIntents({&job, 1});
  store_.Prune(10'000);
  EXPECT_THAT(Column("SELECT key FROM jobs ORDER BY key"), ElementsAre("rl-1", "rl-2"));
  EXPECT_THAT(store_.Check(), IsEmpty());
}

// The sqlite3 program reads the output, and has the same store.
TEST_F(PruneTest, AsSqlItIsTheWholeStore) {
  Measure("rl-1", points_, 1'000, "night; DROP TABLE results; --");
  Measure("rl-2", {points_[1]}, 2'000, "it's \"one\"\nof many\x1b[2J \xE2\x80\xAE", RunStatus::kCrashed);
  std::string sql;
  store_.WriteSql([&](const std::string& text) { sql += text; });
  EXPECT_EQ(sql.find('\x1b'), std::string::npos);
  WriteFile(dir_ / "all.sql", sql);
  const Captured made =
      ridgeline::Run({"sqlite3", (dir_ / "again.db").string(), ".read " + (dir_ / "all.sql").string()});
  ASSERT_TRUE(made.status.ok()) << made.stderr_text;
  Store again = Store::Open(dir_ / "again.db", Store::Mode::kReadWrite);
  EXPECT_THAT(again.Check(), IsEmpty());
  for (const char* all : {"SELECT * FROM measurements ORDER BY result", "SELECT * FROM jobs", "SELECT * FROM sweeps"}) {
    EXPECT_EQ(ToJson(again.Query(all)), ToJson(store_.Query(all))) << all;
  }
}

}  // namespace
}  // namespace ridgeline::store
