// A sweep's repeats, from its file to the measurements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;

constexpr const char* kThreeRepeats = "measure: {warmup_steps: 1, steps: 1, repeats: 3}\n";

TEST(Repeats, RunInRoundsAndAreReported) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "ok", kThreeRepeats);
  EXPECT_THAT(cli.Run({"plan", sweep}).err, HasSubstr("3 repeats of each point"));
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("repeat 1 of 3"));
  EXPECT_THAT(run.out, HasSubstr("[1/")) << "each line says how many runs have ended";
  EXPECT_LT(run.out.rfind("repeat 1 of 3"), run.out.find("repeat 2 of 3"));
  EXPECT_LT(run.out.rfind("repeat 2 of 3"), run.out.find("repeat 3 of 3"));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM runs WHERE repeat = 3"), 2);
  EXPECT_THAT(cli.Run({"run", sweep}).out, HasSubstr("2 were already measured"));
}

TEST(Repeats, EachHasAJobWhereAPersonSubmits) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "ok", kThreeRepeats);
  const auto rendered = cli.Run({"render", sweep, "--to", "by hand"});
  ASSERT_EQ(rendered.status.exit_code, 0) << rendered.err;
  EXPECT_THAT(rendered.out, HasSubstr("2 points in 6 jobs and 1 file"));
  ASSERT_TRUE(Child::Spawn({"/bin/sh", cli.dir.path() / "by hand/run-jobs.sh"}).Wait().ok());
  EXPECT_THAT(cli.Run({"collect", "by hand"}).out, HasSubstr("6 new results"));
  EXPECT_THAT(cli.Run({"collect", "by hand"}).out, HasSubstr("0 new results"));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM runs WHERE repeat = 3"), 2);
}

}  // namespace
}  // namespace ridgeline::cli
