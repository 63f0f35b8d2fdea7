// `ridgeline collect` of a run's files: rebuilds a lost database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/table.h"
#include "run/job.h"
#include "run/results_file.h"
#include "run/spec.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Collect, MakesALostDatabaseAgain) {
  Cli cli;
  const auto mood = cli.dir.path() / "mood";
  const auto sweep = cli.WriteSweep(2, "as=" + mood.string());
  WriteFile(mood, "exit=7");
  ASSERT_EQ(cli.Run({"run", sweep}).status.exit_code, 1);
  WriteFile(mood, "ok");
  ASSERT_EQ(cli.Run({"run", sweep, "--retry", "failed"}).status.exit_code, 0);
  ASSERT_EQ(cli.Run({"run", sweep, "--campaign", "night"}).status.exit_code, 0);
  const auto all = [&](const std::string& sql) { return ToText(cli.OpenStore().Query(sql)); };
  const std::vector<std::string> questions = {
      "SELECT name, text, campaign, setup FROM sweeps",
      "SELECT sweep, ordinal, point_id, setup FROM sweep_points ORDER BY 1, 2",
      "SELECT key, sweep, campaign, setup, launcher, job_dir, state, created_unix_ns FROM jobs ORDER BY 1",
      "SELECT point_id, attempt, job_key, campaign, setup, status, message FROM results ORDER BY 1, 2",
      "SELECT point_id, campaign, machine, version FROM measurements ORDER BY 1, 2"};
  std::vector<std::string> before;
  for (const std::string& question : questions) before.push_back(all(question));
  for (const char* file : {"ridgeline.db", "ridgeline.db-wal", "ridgeline.db-shm"}) {
    std::filesystem::remove(cli.dir.path() / file);
  }
  const auto collected = cli.Run({"collect", "ridgeline-out"});
  EXPECT_EQ(collected.status.exit_code, 0) << collected.err;
  EXPECT_EQ(collected.err, "");
  EXPECT_THAT(collected.out, HasSubstr("6 jobs and 6 results that ridgeline.db did not have"));
  EXPECT_THAT(collected.out, HasSubstr("test: 2 points: 2 ok"));
  for (size_t i = 0; i < questions.size(); ++i) EXPECT_EQ(all(questions[i]), before[i]) << questions[i];
  EXPECT_TRUE(cli.Run({"db", "check"}).status.ok());
  EXPECT_THAT(cli.Run({"collect", "ridgeline-out"}).out, HasSubstr("0 jobs and 0 results"));
  EXPECT_THAT(cli.Run({"run", sweep}).out, HasSubstr("2 were already measured"));
}

TEST(Collect, AJobThatWasAtWorkWhenTheDatabaseWasLostIsGoneOnWith) {
  Cli cli;
  const auto told = cli.dir.path() / "told";
  const auto sweep = cli.WriteSweep(2, "steps-as-told=" + told.string());  // runs until it is told to go on
  Child driver = cli.Start({"run", sweep});
  ASSERT_TRUE(
      testing::Eventually([&] { return !testing::ProcessesWith(cli.dir.path().string() + "/ridgeline-out").empty(); }));
  driver.Signal(SIGKILL);
  driver.Wait();
  for (const char* file : {"ridgeline.db", "ridgeline.db-wal", "ridgeline.db-shm"}) {
    std::filesystem::remove(cli.dir.path() / file);
  }
  const auto collected = cli.Run({"collect", "ridgeline-out"});
  EXPECT_THAT(collected.out, HasSubstr("1 job and 0 results")) << collected.err;
  EXPECT_THAT(collected.out, HasSubstr("1 job may still run: the next `ridgeline run` continues it, "
                                       "`ridgeline cancel` ends it\n"));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results"), 0);
  EXPECT_THAT(cli.Run({"status"}).out, HasSubstr("no run follows these jobs"));
  for (const char* seed : {".1", ".2"}) WriteFile(told.string() + seed, std::string(100, '.'));
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 job of an earlier run adopted"));
  EXPECT_THAT(run.out, HasSubstr("2 ok"));
  ExpectOneResultAPoint(cli, 2);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs"), 2);
  EXPECT_EQ(cli.Count("SELECT max(attempt) FROM results"), 1);
}

TEST(Collect, JobsThatAPersonSubmittedNameNoCampaign) {
  Cli cli;
  const auto sweep = cli.WriteSweep(1, "ok");
  ASSERT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  std::filesystem::remove_all(cli.dir.path() / "ridgeline-out/sweeps");
  const auto job = std::filesystem::directory_iterator(cli.dir.path() / "ridgeline-out/jobs")->path();
  Json document = ReadJsonFile(JobFile(job));
  document.update({{"campaign", ""}, {"launcher", ""}, {"created_unix_ns", 0}});
  document.erase("checksum");
  WriteFile(JobFile(job), DumpJson(document));
  const auto collected = cli.Run({"collect", "ridgeline-out", "--db", "new.db"});
  EXPECT_EQ(collected.status.exit_code, 0);
  EXPECT_THAT(collected.err, HasSubstr("1 job without a campaign: taken for `default`"));
  EXPECT_THAT(collected.err, HasSubstr("the text of the sweep test is not in"));
  EXPECT_THAT(collected.out, HasSubstr("test: 1 point: 1 ok"));
  EXPECT_THAT(cli.Run({"collect", "ridgeline-out", "--db", "night.db", "--campaign", "night"}).err,
              Not(HasSubstr("campaign")));
}

TEST(Collect, MeasuresRenderedJobsAsTheirLauncherRunsThem) {
  Cli cli;
  const auto sweep = cli.dir / "sweep.yaml";
  WriteFile(sweep,
            "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [1, 2]}\nlaunch: {trainer: [" +
                testing::FakeProgram("fake_trainer").string() +
                ", ok], slurm: {gpus: 1, container: 'a:1', partition: p}}\n");
  cli.prefix = {"env", "-u", "SBATCH_QOS", "SBATCH_PARTITION=debug"};
  const auto rendered = cli.Run({"render", sweep, "--launcher", "slurm", "--to", "jobs"});
  cli.prefix.clear();
  ASSERT_EQ(rendered.status.exit_code, 0) << rendered.err;
  EXPECT_THAT(rendered.out, HasSubstr(":  env -u SBATCH_PARTITION sbatch ")) << "the script would refuse to run";
  for (const auto& job : std::filesystem::directory_iterator(cli.dir / "jobs/jobs")) {
    if (!job.is_directory()) continue;
    const RunSpec spec = ReadJobFile(job.path())->points.at(0).spec;
    RunResult result;
    result.point_id = PointId(spec);
    result.status = RunStatus::kOk;
    ResultsWriter(job.path()).Append(result);
  }
  EXPECT_THAT(cli.Run({"collect", "jobs"}).out, HasSubstr("2 ok"));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE setup ->> '$.slurm.container' = 'a:1' AND "
                      "setup ->> '$.slurm.gpus' = 1 AND setup ->> '$.slurm.partition' IS NULL"),
            2);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM sweep_runs"), 2) << "which is how the sweep is measured";
}

TEST(Collect, RefusesAFolderThatNobodyWrote) {
  Cli cli;
  const auto output = cli.Run({"collect", "."});
  EXPECT_EQ(output.status.exit_code, 2);
  EXPECT_THAT(output.err, HasSubstr("was written neither by `ridgeline render` nor by `ridgeline run`"));
}

}  // namespace
}  // namespace ridgeline::cli
