// `ridgeline run`, `status` and `cancel` with real processes: killed, interrupted, without disk, doubled.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "base/json.h"
#include "run/job.h"
#include "run/results_file.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Run, RunsASweepAndAnAgainSkipsIt) {
  Cli cli;
  const auto sweep = cli.WriteSweep(3, "ok", "report: [activation-checkpointing]\n");
  const auto first = cli.Run({"run", sweep});
  ASSERT_EQ(first.status.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("seed=2: ok"));
  EXPECT_THAT(first.out, HasSubstr("3 ok"));
  EXPECT_THAT(first.out, Not(HasSubstr("\x1b"))) << "plain where it is no terminal";
  EXPECT_THAT(first.out, Not(HasSubstr("\r")));
  for (const char* extension : {".html", ".csv", ".md"}) {
    const auto file = cli.dir.path() / "ridgeline-out" / (std::string("activation-checkpointing") + extension);
    EXPECT_TRUE(std::filesystem::exists(file)) << file;
    EXPECT_THAT(first.out, HasSubstr(file.string()));
  }
  const auto again = cli.Run({"run", sweep});
  EXPECT_EQ(again.status.exit_code, 0);
  EXPECT_THAT(again.out, HasSubstr("3 were already measured"));
  ExpectOneResultAPoint(cli, 3);
}

TEST(Run, TheTableAndStatusTellWhatDiffersApart) {
  Cli cli;
  const auto sweep = cli.dir.path() / "sweep.yaml";
  WriteFile(sweep,
            "name: test\ndefaults: {model: llama-5m, seq_length: 32}\nmatrix: {batch_size: [1, 2]}\n"
            "measure: {warmup_steps: 0, steps: 1}\n"
            "launch: {rules: [{when: {batch_size: 2}, set: {environment: {EXAMPLE: there}}}]}\n");
  const auto run = cli.Run({"run", sweep});
  ASSERT_EQ(run.status.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, ContainsRegex("\n +2 [^\n]* environment.EXAMPLE there\n"));
  EXPECT_THAT(run.out, Not(ContainsRegex("\n +1 [^\n]* environment"))) << "it has none";
  const auto one = cli.Run({"status"});
  EXPECT_THAT(
      one.out,
      ContainsRegex("latest result +setup +points +newest run\nok +[^\n]*EXAMPLE[^\n]* 1 +2\nok +\\{\\} +1 +1\n"))
      << "what else they are is the same";
  WriteFile(sweep,
            "name: more\ndefaults: {model: llama-5m, seq_length: 32, precision: fp8}\n"
            "measure: {warmup_steps: 0, steps: 1}\n");
  ASSERT_EQ(cli.Run({"run", sweep, "--campaign", "night"}).status.exit_code, 0);
  const auto two = cli.Run({"status"});
  EXPECT_THAT(two.out, ContainsRegex("latest result +campaign +setup +emulated +points +newest run\n"
                                     "ok +default +[^\n]*EXAMPLE[^\n]* no +1 +2\nok +default +\\{\\} +no +1 +1\n"
                                     "ok +night +\\{\\} +yes +1 +3\n"));
}

// A separate report, whose title names its folder.
void PutReport(const std::filesystem::path& folder, const std::string& title) {
  std::filesystem::create_directories(folder);
  WriteFile(folder / "report.yaml", "version: 1\ntitle: " + title + "\ncolumns:\n  - {name: panel, label: P}\n");
  WriteFile(folder / "query.sql",
            "SELECT model AS panel, NULL AS failure, provenance, emulated, environment, command FROM runs");
}

TEST(Run, WritesReportsThatLieBesideTheSweepOrInAFolderThatIsNamed) {
  Cli cli;
  const auto sweep = cli.WriteSweep(1, "ok", "report: [mine]\n");
  const auto missing = cli.Run({"run", sweep});
  EXPECT_EQ(missing.status.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("there is no report 'mine'"));
  EXPECT_THAT(missing.err, HasSubstr("they are looked for in " + cli.dir.path().string()));
  PutReport(cli.dir.path() / "mine", "Beside the sweep");
  ASSERT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  const auto page = cli.dir.path() / "ridgeline-out/mine.md";
  EXPECT_THAT(ReadFile(page), HasSubstr("# Beside the sweep\n"));
  PutReport(cli.dir.path() / "own/mine", "In a folder");
  ASSERT_EQ(cli.Run({"run", sweep, "--reports", "own"}).status.exit_code, 0);
  EXPECT_THAT(ReadFile(page), HasSubstr("# In a folder\n"));
  EXPECT_THAT(cli.Run({"report", "mine", "--reports", "own"}).out, HasSubstr("# In a folder\n"));
  EXPECT_THAT(cli.Run({"report", "mine", "--sweep", sweep}).out, HasSubstr("# Beside the sweep\n"));
  EXPECT_EQ(cli.Run({"report", "mine"}).status.exit_code, 2) << "nobody says where";
  WriteFile(cli.dir.path() / "own/mine/report.yaml", "version: 1\n");
  const auto list = cli.Run({"report", "--list", "--reports", "own"});
  EXPECT_EQ(list.status.exit_code, 0) << "one that is wrong hides no other";
  EXPECT_THAT(list.out, ContainsRegex("mine +cannot be read: .*'title' is missing"));
  EXPECT_THAT(list.out, HasSubstr("activation-checkpointing"));
  EXPECT_EQ(cli.Run({"report", "mine", "--reports", "nowhere"}).status.exit_code, 2);
}

TEST(Run, FailedPointsAreResultsAndSaidSo) {
  Cli cli;
  const auto mood = cli.dir.path() / "mood";
  const auto sweep = cli.WriteSweep(2, "as=" + mood.string());
  WriteFile(mood, "exit=7");
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 1);
  EXPECT_EQ(run.err, fmt::format("ridgeline: 2 of 2 points failed\n"
                                 "  after you fix the cause: ridgeline run {} --retry failed\n",
                                 sweep.string()));
  EXPECT_THAT(run.out, HasSubstr("2 failed"));
  EXPECT_THAT(run.out, HasSubstr("crashed"));
  WriteFile(mood, "ok");
  const auto skipped = cli.Run({"run", sweep});
  EXPECT_THAT(skipped.out, HasSubstr("2 were already measured"));
  EXPECT_EQ(skipped.status.exit_code, 1) << "they still have no answer";
  const auto retried = cli.Run({"run", sweep, "--retry", "failed"});
  EXPECT_EQ(retried.status.exit_code, 0);
  EXPECT_THAT(retried.out, HasSubstr("2 ok"));
}

TEST(Run, APointThatIsOutOfMemoryIsAnsweredUnlessAllAre) {
  Cli cli;
  const auto file = cli.dir.path() / "sweep.yaml";
  WriteFile(file,
            "name: test\ndefaults: {model: llama-10m, seq_length: 64}\n"
            "matrix: {batch_size: [64, 128]}\nlaunch: {memory_limit: 1MB}\n");
  const auto run = cli.Run({"run", file, "--to", "out here"});
  EXPECT_EQ(run.status.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("2 predicted not to fit (skipped: memory_limit 1.00 MB)"));
  EXPECT_THAT(run.out, HasSubstr("0 ok, 2 failed (out of memory)"));
  EXPECT_EQ(run.err, fmt::format("ridgeline: no point was measured: all are out of memory\n"
                                 "  ridgeline plan {} shows what each needs\n",
                                 file.string()));
}

TEST(Run, EndsWithTheNextCommandForTheTrainer) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "exit=10");
  cli.prefix = {"/bin/sh", "-c", "exec \"$@\" 2>&1", "sh"};
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 1);
  EXPECT_THAT(run.out, EndsWith("0 ok, 2 failed (out of memory)\n"
                                "ridgeline: no point was measured: all are out of memory\n"
                                "  let points be smaller (batch_size, seq_length, checkpointing), or give them more "
                                "memory\n"));
}

TEST(Run, OneThatIsMeasuredBesideOthersThatAreOutOfMemoryIsDone) {
  Cli cli;
  const auto file = cli.dir.path() / "sweep.yaml";
  WriteFile(file,
            "name: test\ndefaults: {model: llama-10m, seq_length: 64}\n"
            "matrix: {batch_size: [1, 4096]}\nmeasure: {warmup_steps: 0, steps: 1, repeats: 1}\n"
            "launch: {memory_limit: 2GB}\n");
  const auto run = cli.Run({"run", file});
  EXPECT_EQ(run.status.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 ok, 1 failed (out of memory)"));
}

TEST(Run, AgainMeasuresOnceMoreAndOnlyWhenAsked) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "ok", "report: [activation-checkpointing]\n");
  ASSERT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  const auto again = cli.Run({"run", sweep, "--again"});
  EXPECT_EQ(again.status.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("2 ok"));
  EXPECT_THAT(again.out, HasSubstr("campaign 20"));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results"), 4);
  EXPECT_THAT(cli.Run({"run", sweep}).out, HasSubstr("2 were already measured")) << "the campaign goes on";
  const auto named = cli.Run({"run", sweep, "--campaign", "night-2"});
  EXPECT_EQ(named.status.exit_code, 0) << named.err;
  EXPECT_THAT(cli.Run({"run", sweep, "--campaign", "night-2"}).out, HasSubstr("2 were already measured"));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results"), 6);
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT campaign) FROM measurements"), 3);
  EXPECT_THAT(cli.Run({"status"}).out, HasSubstr("night-2"));
  ASSERT_EQ(cli.Run({"run", sweep, "--campaign", "default"}).status.exit_code, 0);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results"), 6);
  const auto wrong = cli.Run({"run", sweep, "--campaign", "a b"});
  EXPECT_EQ(wrong.status.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("letters, digits"));
  EXPECT_EQ(cli.Run({"run", sweep, "--again", "--campaign", "x"}).status.exit_code, 2);
  EXPECT_TRUE(cli.Run({"db", "check"}).status.ok());
}

TEST(Run, KilledAndRunAgainTheCampaignThatWasAskedForGoesOn) {
  Cli cli;
  const auto sweep = cli.WriteSweep(6, "slow=30");
  ASSERT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  Child driver = cli.Start({"run", sweep, "--again"});
  ASSERT_TRUE(testing::Eventually([&] { return cli.Count("SELECT count(*) FROM results") > 7; }));
  driver.Signal(SIGKILL);
  driver.Wait();
  const auto last = cli.Run({"run", sweep});
  EXPECT_EQ(last.status.exit_code, 0) << last.err;
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'ok'"), 12);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM (SELECT DISTINCT point_id, campaign FROM results)"), 12);
}

TEST(Run, KilledAtAnyMomentAndRunAgainEveryPointEndsWithOneResult) {
  std::mt19937 random(20260101);
  int kills = 0;
  while (kills < 20) {
    Cli cli;
    const auto sweep = cli.WriteSweep(8, "slow=15", "");
    for (;;) {
      Child driver = cli.Start({"run", sweep});
      const auto wait_ns = static_cast<int64_t>(random() % 250) * 1'000'000;
      if (driver.WaitFor(wait_ns)) break;
      driver.Signal(SIGKILL);
      driver.Wait();
      if (++kills % 7 == 0) break;
    }
    const auto last = cli.Run({"run", sweep});
    ASSERT_EQ(last.status.exit_code, 0) << last.err;
    ExpectOneResultAPoint(cli, 8);
  }
}

TEST(Run, EverythingKilledAtAnyMomentAndRunAgainEveryPointEndsWithAResult) {
  std::mt19937 random(20260102);
  Cli cli;
  const auto sweep = cli.WriteSweep(12, "slow=30");
  for (int kills = 0; kills < 10; ++kills) {
    Child driver = cli.Start({"run", sweep});
    if (driver.WaitFor(static_cast<int64_t>(random() % 200) * 1'000'000)) break;
    driver.Signal(SIGKILL);
    for (const pid_t pid : cli.Processes()) ::kill(pid, SIGKILL);  // `exec` and the trainer among them
    driver.Wait();
  }
  const auto last = cli.Run({"run", sweep});
  ASSERT_EQ(last.status.exit_code, 0) << last.err;
  EXPECT_EQ(cli.Count("SELECT count(*) FROM latest WHERE status = 'ok'"), 12);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'ok'"), 12) << "a point was measured twice";
  EXPECT_TRUE(cli.Run({"db", "check"}).status.ok());
  EXPECT_TRUE(testing::Eventually([&] { return cli.Processes().empty(); }));
}

TEST(Run, RefusesCudaPointsThatThisInstallationCannotRun) {
  if (std::filesystem::exists(Program().parent_path() / "ridgeline-train-cuda"))
    GTEST_SKIP() << "built with the CUDA device";
  Cli cli;
  const auto sweep = cli.dir / "cuda.yaml";
  WriteFile(sweep,
            "name: cuda\ndefaults: {model: llama-1b, device: cuda, gpu: h100}\n"
            "launch: {launcher: slurm, slurm: {gpus: 1}}\n");
  const auto run = cli.Run({"run", sweep.string()});
  EXPECT_EQ(run.status.exit_code, 3) << run.err;
  EXPECT_THAT(run.err, HasSubstr("this installation was built without the CUDA device"));
  EXPECT_FALSE(std::filesystem::exists(cli.dir / "ridgeline.db"));
  const auto plan = cli.Run({"plan", sweep.string()});
  EXPECT_EQ(plan.status.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.err, HasSubstr("warning: points have device: cuda, but this installation"));
}

TEST(Run, CtrlCStopsCleanlyAndRunningAgainContinues) {
  Cli cli;
  const auto mood = cli.dir.path() / "mood";
  const auto sweep = cli.WriteSweep(3, "as=" + mood.string());
  WriteFile(mood, "sleep");
  Child driver = cli.Start({"run", sweep});
  ASSERT_TRUE(
      testing::Eventually([&] { return !testing::ProcessesWith(cli.dir.path().string() + "/ridgeline-out").empty(); }));
  driver.Signal(SIGINT);
  const auto stopped = cli.Finish(driver);
  EXPECT_EQ(stopped.status.exit_code, 130) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("to continue: ridgeline run"));
  EXPECT_TRUE(testing::Eventually([&] { return cli.Processes().empty(); })) << "it left jobs behind";
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs WHERE state IN ('intent', 'submitted', 'running')"), 0);
  WriteFile(mood, "ok");
  const auto again = cli.Run({"run", sweep});
  EXPECT_EQ(again.status.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("3 ok"));
}

bool JobRuns(Cli& cli) { return !testing::ProcessesWith(cli.dir.path().string() + "/ridgeline-out").empty(); }

TEST(Run, AClosedTerminalLeavesItsJobsAndTheNextRunFollowsThem) {
  Cli cli;
  const auto sweep = cli.WriteSweep(1, "slow=1500");
  Child driver = cli.Start({"run", sweep});
  ASSERT_TRUE(testing::Eventually([&] { return JobRuns(cli); }));
  driver.Signal(SIGHUP);
  const auto left = cli.Finish(driver);
  EXPECT_EQ(left.status.exit_code, 130) << left.err;
  EXPECT_THAT(left.out, HasSubstr("1 job goes on by itself"));
  EXPECT_THAT(left.out, HasSubstr("run what is left: ridgeline run " + sweep.string()));
  EXPECT_TRUE(JobRuns(cli));
  EXPECT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  ExpectOneResultAPoint(cli, 1);
}

// If a scheduler ends the job that runs a driver, the jobs that the driver submitted should continue.
TEST(Run, InsideAJobOfSlurmsSigtermLeavesTheJobs) {
  Cli cli;
  const auto sweep = cli.WriteSweep(1, "slow=1500");
  ::setenv("SLURM_JOB_ID", "7", 1);
  Child driver = cli.Start({"run", sweep});
  ::unsetenv("SLURM_JOB_ID");
  ASSERT_TRUE(testing::Eventually([&] { return JobRuns(cli); }));
  driver.Signal(SIGTERM);
  EXPECT_THAT(cli.Finish(driver).out, HasSubstr("1 job goes on by itself"));
  EXPECT_TRUE(JobRuns(cli));
  EXPECT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  ExpectOneResultAPoint(cli, 1);
}

TEST(Run, NobodyDetachesFromThisMachine) {
  Cli cli;
  const auto run = cli.Run({"run", cli.WriteSweep(1, "ok"), "--detach"});
  EXPECT_EQ(run.status.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("the launcher local has no queue"));
  EXPECT_THAT(run.err, HasSubstr("nohup"));
}

TEST(Status, WatchesUntilNobodyIsAtWork) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "slow=700");
  Child driver = cli.Start({"run", sweep});
  ASSERT_TRUE(testing::Eventually([&] { return JobRuns(cli); }));
  const Captured watch =
      ridgeline::Run({Program().string(), "status", "--watch", "--db", (cli.dir / "ridgeline.db").string()});
  EXPECT_EQ(watch.status.exit_code, 0) << watch.stderr_text;
  EXPECT_THAT(watch.stdout_text, HasSubstr("is at work on test"));
  EXPECT_THAT(watch.stdout_text, ContainsRegex("ok +2 +2\n"));
  EXPECT_THAT(watch.stdout_text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(cli.Finish(driver).status.exit_code, 0);
}

TEST(Run, UnderNohupItOutlivesItsTerminal) {
  Cli cli;
  const auto sweep = cli.WriteSweep(3, "slow=150");
  ::signal(SIGHUP, SIG_IGN);  // inherited by child processes
  Child driver = cli.Start({"run", sweep});
  ::signal(SIGHUP, SIG_DFL);
  ASSERT_TRUE(
      testing::Eventually([&] { return !testing::ProcessesWith(cli.dir.path().string() + "/ridgeline-out").empty(); }));
  driver.Signal(SIGHUP);
  EXPECT_EQ(cli.Finish(driver).status.exit_code, 0);
}

TEST(Run, ASecondDriverIsToldWhoIsAtWork) {
  Cli cli;
  const auto sweep = cli.WriteSweep(1, "sleep");
  Child driver = cli.Start({"run", sweep});
  ASSERT_TRUE(
      testing::Eventually([&] { return !testing::ProcessesWith(cli.dir.path().string() + "/ridgeline-out").empty(); }));
  const Captured second =
      ridgeline::Run({Program().string(), "run", sweep.string(), "--db", (cli.dir.path() / "ridgeline.db").string(),
                      "--to", (cli.dir.path() / "elsewhere").string()});
  EXPECT_EQ(second.status.exit_code, 3);
  EXPECT_THAT(second.stderr_text, HasSubstr("process " + std::to_string(driver.pid())));

  const Captured status =
      ridgeline::Run({Program().string(), "status", "--db", (cli.dir.path() / "ridgeline.db").string()});
  EXPECT_THAT(status.stdout_text, HasSubstr("process " + std::to_string(driver.pid()) + " is at work on test"));
  EXPECT_THAT(status.stdout_text, HasSubstr("rl-"));

  // cancel stops the running driver.
  const Captured cancel =
      ridgeline::Run({Program().string(), "cancel", "test", "--db", (cli.dir.path() / "ridgeline.db").string()});
  EXPECT_EQ(cancel.status.exit_code, 0) << cancel.stderr_text;
  EXPECT_EQ(cli.Finish(driver).status.exit_code, 130);
  EXPECT_TRUE(testing::Eventually([&] { return cli.Processes().empty(); }));
}

TEST(Cancel, StopsADriverThatAShellStartedInTheBackground) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "sleep");
  ::signal(SIGINT, SIG_IGN);  // as a shell without job control sets it for commands before `&`
  Child driver = cli.Start({"run", sweep});
  ::signal(SIGINT, SIG_DFL);
  ASSERT_TRUE(
      testing::Eventually([&] { return !testing::ProcessesWith(cli.dir.path().string() + "/ridgeline-out").empty(); }));
  const Captured cancel =
      ridgeline::Run({Program().string(), "cancel", "test", "--db", (cli.dir.path() / "ridgeline.db").string()});
  EXPECT_EQ(cancel.status.exit_code, 0) << cancel.stderr_text;
  EXPECT_EQ(cancel.stdout_text, fmt::format("the run that worked on it (process {}) has stopped\n1 job cancelled; "
                                            "the next `ridgeline run` runs what has no result\n",
                                            driver.pid()));
  EXPECT_EQ(cli.Finish(driver).status.exit_code, 130);
  EXPECT_TRUE(testing::Eventually([&] { return cli.Processes().empty(); }));
}

TEST(Cancel, EndsTheJobsOfADriverThatWasKilled) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "sleep");
  Child driver = cli.Start({"run", sweep});
  ASSERT_TRUE(testing::Eventually([&] {
    return !testing::ProcessesWith("fake_trainer sleep --spec " + cli.dir.path().string()).empty() ||
           testing::ProcessesWith(cli.dir.path().string() + "/ridgeline-out").size() > 1;
  }));
  driver.Signal(SIGKILL);
  driver.Wait();
  EXPECT_THAT(cli.Run({"status"}).out, HasSubstr("no run follows these jobs"));
  const auto cancel = cli.Run({"cancel", sweep});
  EXPECT_EQ(cancel.status.exit_code, 0) << cancel.err;
  EXPECT_THAT(cancel.out, HasSubstr("1 job cancelled"));
  EXPECT_TRUE(testing::Eventually([&] { return cli.Processes().empty(); })) << "it left processes behind";
  EXPECT_THAT(cli.Run({"cancel", "test"}).out, HasSubstr("nothing to cancel"));
  const auto unknown = cli.Run({"cancel", "tset"});
  EXPECT_EQ(unknown.status.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'test'"));
}

TEST(Run, ADatabaseThatIsDamagedIsLeftAsItIs) {
  Cli cli;
  const auto sweep = cli.WriteSweep(1, "ok");
  const std::string garbage(8192, 'x');
  std::ofstream(cli.dir.path() / "ridgeline.db") << garbage;
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 2) << run.out;
  EXPECT_THAT(run.err, HasSubstr("ridgeline.db"));
  EXPECT_EQ(ReadFile(cli.dir.path() / "ridgeline.db"), garbage);
}

TEST(Run, ReadsItsSweepOnceSoTheTextThatIsKeptIsTheTextThatRan) {
  Cli cli;
  const std::string text = ReadFile(cli.WriteSweep(1, "ok"));
  const auto pipe = cli.dir.path() / "pipe.yaml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Child run = cli.Start({"run", pipe});
  std::ofstream(pipe) << text;  // a second read would wait forever
  const bool ended = testing::Eventually([&] { return run.Poll().has_value(); });
  if (!ended) run.Signal(SIGKILL);
  ASSERT_TRUE(ended) << "it reads the file again";
  EXPECT_EQ(std::get<std::string>(cli.OpenStore().Query("SELECT text FROM sweeps").rows.at(0).at(0)), text);
}

TEST(Run, AResultFileCutShortIsAFailureWithItsEvidence) {
  Cli cli;
  const auto sweep = cli.WriteSweep(1, "half-result");
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 failed"));
  EXPECT_TRUE(cli.Run({"db", "check"}).status.ok());
}

TEST(Run, AnOutputFolderThatCannotBeIsOneClearError) {
  Cli cli;
  const auto sweep = cli.WriteSweep(1, "ok");
  std::ofstream(cli.dir.path() / "file") << "x";
  const auto run = cli.Run({"run", sweep, "--to", "file/out"});
  EXPECT_EQ(run.status.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("file/out"));
}

TEST(Run, AFullDiskIsToldAndLosesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a small disk needs root";
  Cli cli;
  const auto disk = cli.dir.path() / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=640k") != 0) GTEST_SKIP() << "no leave to mount a tmpfs";
  const auto sweep = cli.WriteSweep(200, "ok");
  const std::vector<std::string> argv = {"run", sweep, "--db", disk / "r.db", "--to", disk / "out"};
  const auto full = cli.Run(argv);
  EXPECT_EQ(full.status.exit_code, 3) << full.out << full.err;
  EXPECT_THAT(full.err, HasSubstr("ridgeline:"));
  EXPECT_TRUE(testing::Eventually([&] { return cli.Processes().empty(); }));
  EXPECT_EQ(::mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=128m"), 0);
  const auto check = cli.Run({"db", "check", "--db", disk / "r.db"});
  EXPECT_TRUE(check.status.ok()) << check.out << check.err;
  const auto again = cli.Run(argv);
  EXPECT_EQ(again.status.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("200 ok"));
  EXPECT_TRUE(testing::Eventually([&] { return ::umount(disk.c_str()) == 0; }));
}

TEST(Run, ShowsALiveLineOnATerminal) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "slow=400");
  const Captured run =
      ridgeline::Run({"env", "TERM=xterm", "script", "-qec",
                      Program().string() + " run " + sweep.string() + " --db " +
                          (cli.dir.path() / "ridgeline.db").string() + " --to " + (cli.dir.path() / "out").string(),
                      "/dev/null"});
  EXPECT_EQ(run.status.exit_code, 0) << run.stdout_text << run.stderr_text;
  EXPECT_THAT(run.stdout_text, HasSubstr("\r\x1b[K[0/2]"));
  EXPECT_THAT(run.stdout_text, HasSubstr("seed=1"));
  EXPECT_THAT(run.stdout_text, HasSubstr("2 ok"));
}

TEST(Db, BackupIsOfOneMomentWhileARunIsAtWork) {
  Cli cli;
  const auto sweep = cli.WriteSweep(3, "slow=300");
  Child driver = cli.Start({"run", sweep});
  ASSERT_TRUE(
      testing::Eventually([&] { return !testing::ProcessesWith(cli.dir.path().string() + "/ridgeline-out").empty(); }));
  const auto db = [&](const std::vector<std::string>& more) {
    std::vector<std::string> argv = {Program().string(), "db"};
    argv.insert(argv.end(), more.begin(), more.end());
    return ridgeline::Run(argv);
  };
  const std::string here = cli.dir.path() / "ridgeline.db";
  const std::string copy = cli.dir.path() / "it's a copy.db";
  const Captured backup = db({"backup", "--to", copy, "--db", here});
  EXPECT_EQ(backup.status.exit_code, 0) << backup.stderr_text;
  EXPECT_EQ(cli.Finish(driver).status.exit_code, 0);
  EXPECT_TRUE(db({"check", "--db", copy}).status.ok());
  EXPECT_THAT(db({"backup", "--to", copy, "--db", here}).stderr_text, HasSubstr("is there already"));
  EXPECT_EQ(db({"backup", "--to", cli.dir.path() / "nowhere/x.db", "--db", here}).status.exit_code, 3);
}

TEST(Db, ExportWritesEveryMeasurement) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "ok");
  ASSERT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  EXPECT_THAT(cli.Run({"db", "export", "--to", "all.jsonl"}).out,
              HasSubstr("all.jsonl: 2 measurements of ridgeline.db"));
  const std::string text = ReadFile(cli.dir.path() / "all.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_THAT(text, HasSubstr("\"campaign\""));
  EXPECT_EQ(cli.Run({"db", "export", "--to", "all.txt"}).status.exit_code, 2);
  EXPECT_EQ(cli.Run({"db", "export", "--to", "all.sql"}).out, "all.sql: all of ridgeline.db\n");
  EXPECT_FALSE(std::filesystem::exists(cli.dir / "all.sql.part"));
  EXPECT_THAT(cli.Run({"db", "prune", "--before", "2020-01-01"}).out,
              HasSubstr(": deleted 0 measurements before 2020-01-01"));
  EXPECT_THAT(cli.Run({"db", "vacuum"}).out, HasSubstr(", and "));
  for (const char* date : {"", "yesterday", "2020-13-01", "2020-01-01x"}) {
    EXPECT_EQ(cli.Run({"db", "prune", "--before", date}).status.exit_code, 2) << date;
  }
}

TEST(Db, MergeBringsTwoDatabasesTogether) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "ok");
  ASSERT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  ASSERT_EQ(cli.Run({"run", sweep, "--db", "other.db", "--to", "other"}).status.exit_code, 0);
  const auto merged = cli.Run({"db", "merge", "other.db"});
  EXPECT_EQ(merged.status.exit_code, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("ridgeline.db has 2 new measurements of 2 jobs"));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM measurements"), 4);
  EXPECT_THAT(cli.Run({"db", "merge", "other.db"}).out, HasSubstr("0 new measurements of 0 jobs"));
  EXPECT_THAT(cli.Run({"run", sweep}).out, HasSubstr("2 were already measured"));
  EXPECT_TRUE(cli.Run({"db", "check"}).status.ok());
  EXPECT_EQ(cli.Run({"db", "merge", "nowhere.db"}).status.exit_code, 2);
}

TEST(Render, WritesWhatAPersonCanSubmitAndCollectTakesTheResults) {
  Cli cli;
  const auto sweep = cli.WriteSweep(3, "ok", "report: [activation-checkpointing]\n");
  const auto rendered = cli.Run({"render", sweep, "--to", "by hand"});
  ASSERT_EQ(rendered.status.exit_code, 0) << rendered.err;
  EXPECT_THAT(rendered.out, HasSubstr("3 points in 3 jobs and 1 file"));
  EXPECT_FALSE(std::filesystem::exists(cli.dir.path() / "ridgeline.db"));

  const auto nothing_yet = cli.Run({"collect", "by hand"});
  EXPECT_EQ(nothing_yet.status.exit_code, 0) << nothing_yet.err;
  EXPECT_THAT(nothing_yet.out, HasSubstr("3 without a result"));

  ASSERT_TRUE(Child::Spawn({"/bin/sh", cli.dir.path() / "by hand/run-jobs.sh"}).Wait().ok());
  for (const char* added : {"3 new results", "0 new results"}) {
    const auto collected = cli.Run({"collect", "by hand"});
    EXPECT_EQ(collected.status.exit_code, 0) << collected.err;
    EXPECT_THAT(collected.out, HasSubstr(added));
    EXPECT_THAT(collected.out, HasSubstr("3 ok"));
  }
  EXPECT_TRUE(std::filesystem::exists(cli.dir.path() / "by hand/activation-checkpointing.html"));
  ExpectOneResultAPoint(cli, 3);
  EXPECT_THAT(cli.Run({"collect", "by hand", "--campaign", "night-2"}).out, HasSubstr("3 new results"));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM measurements WHERE campaign = 'night-2'"), 3);
}

TEST(Render, APointThatCannotFitIsSaidAndCollected) {
  Cli cli;
  const auto file = cli.dir.path() / "sweep.yaml";
  WriteFile(file,
            "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {batch_size: [1, 4096]}\n"
            "launch: {memory_limit: 2GB}\n");
  const auto rendered = cli.Run({"render", file, "--to", "rendered"});
  EXPECT_EQ(rendered.status.exit_code, 0) << rendered.err;
  EXPECT_THAT(rendered.out, HasSubstr("1 point is predicted not to fit (memory_limit 2.00 GB), so in no job"));
  const auto collected = cli.Run({"collect", "rendered"});
  EXPECT_THAT(collected.out, HasSubstr("0 ok, 1 failed (out of memory), 1 without a result")) << collected.err;
  EXPECT_THAT(cli.Run({"query", "SELECT message FROM results"}).out, HasSubstr("(memory_limit 2.00 GB)"));
}

}  // namespace
}  // namespace ridgeline::cli
