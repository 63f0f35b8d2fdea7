// `search:` and `batch_size: max` as users see them: planned, run, killed, and refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::filesystem::path WriteSearch(Cli& cli, const std::string& text) {
  const auto file = cli.dir.path() / "sweep.yaml";
  WriteFile(file, "name: test\ndefaults: {model: llama-5m, seq_length: 32}\n" + text);
  return file;
}

std::string WithFakeTrainer(const std::string& mode) {
  return "launch: {trainer: [" + testing::FakeProgram("fake_trainer").string() + ", " + mode + "]}\n";
}

// 0 while there is no database yet.
int64_t ResultsSoFar(Cli& cli) {
  try {
    return cli.Count("SELECT count(*) FROM results");
  } catch (const Error&) {
    return 0;
  }
}

TEST(SearchCommand, PlanSaysWhatItWouldTryFirstAndRunsNothing) {
  Cli cli;
  const auto sweep = WriteSearch(cli,
                                 "matrix: {batch_size: [1, max], checkpointing: [none, full]}\n"
                                 "search: {maximize: tokens_per_s, over: [batch_size, checkpointing], budget: 2}\n"
                                 "launch: {memory_limit: 300MB}\n");
  const auto plan = cli.Run({"plan", sweep});
  ASSERT_EQ(plan.status.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.err, ContainsRegex("batch_size: max is [0-9]+ \\(checkpointing=none\\): [0-9.]+ MB of 204 MB a rank "
                                      "\\(memory_limit 300 MB\\)\n"));
  EXPECT_THAT(plan.err,
              HasSubstr("search: the most tokens/s over batch_size, checkpointing; 4 points, at most 2 runs"));
  EXPECT_THAT(plan.err, HasSubstr("search: 4 of 4 points may be tried; first\n  batch_size="));
  EXPECT_FALSE(std::filesystem::exists(cli.dir / "ridgeline.db"));
  const auto rendered = cli.Run({"render", sweep, "--to", cli.dir / "jobs"});
  EXPECT_EQ(rendered.status.exit_code, 2);
  EXPECT_THAT(rendered.err, HasSubstr("has a search, which depends on earlier measurements"));
  const auto predicted = cli.Run({"predict", sweep, "--device", "h100", "-o", "csv"});
  ASSERT_EQ(predicted.status.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.out, Not(HasSubstr("out_of_memory"))) << "max is what fits into that device";
}

TEST(SearchCommand, ReportsMistakesBeforeAnythingRuns) {
  Cli cli;
  const auto no_budget = WriteSearch(cli, "matrix: {batch_size: [1, 2]}\nsearch: {maximize: fit}\n");
  for (const char* command : {"plan", "run"}) {
    const auto wrong = cli.Run({command, no_budget});
    EXPECT_EQ(wrong.status.exit_code, 2) << command;
    EXPECT_THAT(wrong.err, HasSubstr("sweep.yaml:4:9: search needs a budget")) << command;
  }
  const auto empty = WriteSearch(
      cli, "matrix: {batch_size: [1, 2]}\nexclude: [{seq_length: 32}]\nsearch: {maximize: fit, budget: 1}\n");
  const auto run = cli.Run({"run", empty});
  EXPECT_EQ(run.status.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("sweep.yaml:5:9: search: the space is empty"));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs"), 0);
}

TEST(SearchCommand, ATrainerThatFailsOnEveryPointEndsIt) {
  Cli cli;
  const auto sweep = WriteSearch(cli,
                                 "matrix: {batch_size: 1..128*2}\nmeasure: {warmup_steps: 1, steps: 2}\n"
                                 "search: {maximize: tokens_per_s, budget: 8}\n"
                                 "launch: {give_up_after: 3, trainer: [" +
                                     testing::FakeProgram("fake_trainer").string() + ", exit=3]}\n");
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 1);
  EXPECT_THAT(run.err,
              HasSubstr("it stopped when each of the first 3 points ended alike, crashed: the trainer ended with "
                        "exit code 3"));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results"), 3);
}

TEST(SearchCommand, AKilledOneGoesOnAndMeasuresNothingTwice) {
  Cli cli;
  const auto sweep = WriteSearch(cli,
                                 "matrix: {batch_size: 1..128*2}\nmeasure: {warmup_steps: 1, steps: 2}\n"
                                 "search: {maximize: tokens_per_s, budget: 5}\n" +
                                     WithFakeTrainer("slow=300"));
  Child first = cli.Start({"run", sweep});
  ASSERT_TRUE(testing::Eventually([&] { return ResultsSoFar(cli) >= 2; }));
  first.Signal(SIGKILL);
  cli.Finish(first);
  const auto second = cli.Run({"run", sweep});
  ASSERT_EQ(second.status.exit_code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("search: the best measured is batch_size="));
  const int64_t results = cli.Count("SELECT count(*) FROM results");
  EXPECT_LE(results, 5);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM sweep_points"), results) << "the sweep's points are those it measured";
  ExpectOneResultAPoint(cli, results);
}

}  // namespace
}  // namespace ridgeline::cli
