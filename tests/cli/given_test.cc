// `-S`, `--only` and `run --dry-run`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

class GivenOptions : public ::testing::Test {
 protected:
  std::set<std::string> Files() {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cli_.dir.path())) {
      const std::string name = entry.path().filename().string();
      // SQLite makes two files beside a database that is read.
      if (name != "out" && name != "err" && !name.ends_with("-shm") && !name.ends_with("-wal"))
        files.insert(entry.path().string());
    }
    return files;
  }

  std::string Points(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"plan", sweep_, "--expand-only", "-o", "jsonl"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto said = cli_.Run(arguments);
    EXPECT_TRUE(said.status.ok()) << said.err;
    return said.out;
  }

  Cli cli_;
  std::string sweep_ = cli_.WriteSweep(3, "ok").string();
};

TEST_F(GivenOptions, RunMeasuresWhatPlanLists) {
  const std::vector<std::string> given = {"-S", "seq_length=32", "--only", "seed=1,3"};
  const auto ran = cli_.Run({"run", sweep_, "-S", "seq_length=32", "--only", "seed=1,3"});
  ASSERT_EQ(ran.status.exit_code, 0) << ran.err;
  ExpectOneResultAPoint(cli_, 2);
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM runs WHERE seq_length = 32 AND seed IN (1, 3)"), 2);
  const std::string planned = Points(given);
  for (const auto& row : cli_.OpenStore().Query("SELECT point_id FROM results").rows) {
    EXPECT_THAT(planned, HasSubstr(CellText(row.at(0))));
  }

  // The kept text has them, so that a lost database is the same again.
  std::filesystem::rename(cli_.dir.path() / "ridgeline.db", cli_.dir.path() / "lost.db");
  const auto collected = cli_.Run({"collect", "ridgeline-out"});
  ASSERT_TRUE(collected.status.ok()) << collected.err;
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM sweep_points"), 2);
  ExpectOneResultAPoint(cli_, 2);
}

// The points that it counts are fewer than the file's.
TEST_F(GivenOptions, StatusSaysOfWhichPointsItsCountsAre) {
  ASSERT_EQ(cli_.Run({"run", sweep_, "-S", "seq_length=32", "--only", "seed=1,3"}).status.exit_code, 0);
  const auto status = cli_.Run({"status"});
  EXPECT_THAT(status.out,
              HasSubstr("test: the points of its last run, with set: {\"seq_length\": 32}, only: {\"seed\": [1, 3]}; "
                        "results of other points are kept\n"));
  const Json json = ParseJson(cli_.Run({"status", "-o", "json"}).out, "status");
  EXPECT_THAT(json.at("sweeps").at(0).at("given").get<std::string>(), HasSubstr("only: {\"seed\": [1, 3]}"));
  ASSERT_EQ(cli_.Run({"run", sweep_}).status.exit_code, 0);
  EXPECT_THAT(cli_.Run({"status"}).out, Not(HasSubstr("of its last run")));
}

TEST_F(GivenOptions, RenderedJobsAreCollectedAsGiven) {
  const auto rendered = cli_.Run({"render", sweep_, "--to", "jobs", "-S", "seq_length=32", "--only", "seed=2"});
  ASSERT_TRUE(rendered.status.ok()) << rendered.err;
  EXPECT_THAT(rendered.out, HasSubstr("1 point in 1 job"));
  const auto collected = cli_.Run({"collect", "jobs"});
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM sweep_points"), 1) << collected.err;
}

TEST_F(GivenOptions, AreRepeatedInTheSuggestedNextCommand) {
  const auto left = cli_.Run({"run", cli_.WriteSweep(2, "segfault").string(), "-S", "steps=3", "--only", "seed<2"});
  EXPECT_THAT(left.err, AllOf(HasSubstr("-S steps=3 --only 'seed<2' --retry failed"), HasSubstr("1 of 1 points")));
}

TEST_F(GivenOptions, AFaultNamesTheOption) {
  const auto wrong = cli_.Run({"run", sweep_, "-S", "batch_sise=2"});
  EXPECT_EQ(wrong.status.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("-S: unknown field 'batch_sise', did you mean 'batch_size'?"));
  EXPECT_THAT(cli_.Run({"run", sweep_, "-S", "data=a b"}).err, HasSubstr("-S: the data file 'a b' is missing"));
  EXPECT_EQ(cli_.Run({"predict", sweep_, "--device", "p5", "--only", "seed=9"}).status.exit_code, 2);
}

TEST_F(GivenOptions, ADryRunShowsCommandsAndChangesNothing) {
  const std::set<std::string> before = Files();
  const auto first = cli_.Run({"run", sweep_, "--dry-run"});
  ASSERT_EQ(first.status.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("seed=1"), HasSubstr("seed=3"), HasSubstr("fake_trainer")));
  EXPECT_THAT(first.err, HasSubstr("nothing was started; 3 of 3 points would run on local"));
  EXPECT_EQ(Files(), before);

  ASSERT_EQ(cli_.Run({"run", sweep_, "--only", "seed=2"}).status.exit_code, 0);
  const std::set<std::string> measured = Files();
  const int64_t listed = cli_.Count("SELECT count(*) FROM sweep_points");
  const auto second = cli_.Run({"run", sweep_, "--dry-run"});
  EXPECT_THAT(second.out, AllOf(HasSubstr("seed=1"), Not(HasSubstr("seed=2")), HasSubstr("seed=3")));
  EXPECT_THAT(second.err, HasSubstr("2 of 3 points would run on local; 1 measured already"));
  const auto none = cli_.Run({"run", sweep_, "--dry-run", "--only", "seed=2"});
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("0 of 1 point would run"));
  EXPECT_THAT(cli_.Run({"run", sweep_, "--dry-run", "--again"}).err, HasSubstr("3 of 3 points would run"));
  EXPECT_THAT(Files(), IsSupersetOf(measured));
  EXPECT_EQ(Files().size(), measured.size());
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM sweep_points"), listed);
}

TEST_F(GivenOptions, ADryRunCountsFailuresAsARunDoes) {
  const std::string crashing = cli_.WriteSweep(2, "segfault").string();
  cli_.Run({"run", crashing});
  EXPECT_THAT(cli_.Run({"run", crashing, "--dry-run"}).err, HasSubstr("0 of 2 points would run"));
  EXPECT_THAT(cli_.Run({"run", crashing, "--dry-run", "--retry", "failed"}).err, HasSubstr("2 of 2 points would run"));
}

}  // namespace
}  // namespace ridgeline::cli
