// `ridgeline run` and `status` with a scheduler that follows a script: how a run ends, and what is shown of jobs that
// no driver follows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Scripted : public ::testing::Test {
 protected:
  Scripted() { ::setenv("RIDGELINE_HOME", testing::FakePluginDir().parent_path().c_str(), 1); }
  ~Scripted() override { ::unsetenv("RIDGELINE_HOME"); }

  // A sweep of two points. `launcher`: added to the scripted launcher's mapping. `launch`: added to `launch:` itself.
  void Write(const std::string& launcher, const std::string& launch = {}, const std::string& trainer = {},
             const std::string& seeds = "1, 2") const {
    WriteFile(cli_.dir / "sweep.yaml",
              fmt::format("name: test\ndefaults: {{model: llama-10m, seq_length: 64}}\nmatrix: {{seed: [{}]}}\n"
                          "launch: {{launcher: scripted, trainer: [{}, ok], {}scripted: {{{}}}}}\n",
                          seeds, trainer.empty() ? testing::FakeProgram("fake_trainer").string() : trainer, launch,
                          launcher));
  }
  int64_t PollsOfEach() {
    int64_t polls = -1;
    for (const auto& record : std::filesystem::directory_iterator(cli_.dir / "ridgeline.db.launchers/scripted")) {
      const Json job = ReadJsonFile(record.path());
      EXPECT_EQ(job.at("cancelled"), false);
      EXPECT_TRUE(polls == -1 || polls == job.at("polls"));
      polls = job.at("polls");
    }
    return polls;
  }

  Cli cli_;
};

struct End {
  const char* launcher;
  const char* launch;
  const char* trainer;
  const char* says;
  const char* next;
};
class ScriptedEnd : public Scripted, public ::testing::WithParamInterface<End> {};

TEST_P(ScriptedEnd, LeavesPointsWithoutAResultSoItIsThreeAndShowsWhatThereIsAndSaysHowToGoOn) {
  const End& end = GetParam();
  Write(end.launcher, end.launch, end.trainer);
  const auto run = cli_.Run({"run", "sweep.yaml"});
  EXPECT_EQ(run.status.exit_code, 3) << run.out << run.err;
  EXPECT_THAT(run.out, ContainsRegex("seed +status +tokens/s[^\n]*\n +1 +(infrastructure|no result)"));
  EXPECT_THAT(run.out, HasSubstr("0 ok, 2 without a result"));
  EXPECT_THAT(run.err, HasSubstr(end.says));
  EXPECT_THAT(run.err, HasSubstr(end.next));
  Write("");
  const auto next = cli_.Run({"run", "sweep.yaml"});
  EXPECT_EQ(next.status.exit_code, 0) << next.out << next.err;
  EXPECT_THAT(next.out, HasSubstr("2 ok"));
}

// A queue that takes a moment a job, and 40 points for it.
class SlowScripted : public Scripted {
 protected:
  // Returns once the launcher has been called and has taken that many jobs.
  Child StartAndWaitForJobs(const std::string& job_takes_ms, size_t jobs) {
    std::string seeds = "1";
    for (int i = 2; i <= 40; ++i) seeds += fmt::format(", {}", i);
    Write(fmt::format("queue: 100, script: [running], job_takes_ms: {}", job_takes_ms), "", "", seeds);
    Child driver = cli_.Start({"run", "sweep.yaml"});
    EXPECT_TRUE(testing::Eventually([&] { return std::filesystem::exists(kState / "called") && Jobs() >= jobs; }));
    return driver;
  }
  size_t Jobs() const {
    size_t jobs = 0;
    std::error_code ec;
    for (std::filesystem::directory_iterator at(kState, ec), end; !ec && at != end; at.increment(ec)) {
      if (at->path().extension() == ".json") ++jobs;
    }
    return jobs;
  }
  const std::filesystem::path kState = cli_.dir / "ridgeline.db.launchers/scripted";
};

TEST_F(SlowScripted, CtrlCEndsTheFewJobsThatWereSubmittedAndNoOthers) {
  Child driver = StartAndWaitForJobs("300", 2);
  driver.Signal(SIGINT);
  const auto stopped = cli_.Finish(driver);
  EXPECT_EQ(stopped.status.exit_code, 130) << stopped.err;
  EXPECT_LE(Jobs(), 20) << "one more call at most, beside those of a test that is slow to press Ctrl-C";
  EXPECT_THAT(stopped.out, HasSubstr("to continue: ridgeline run"));
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM jobs WHERE state IN ('intent', 'submitted', 'running')"), 0);
}

TEST_F(SlowScripted, TheSecondCtrlCLeavesThoughACallDoesNotReturn) {
  Child driver = StartAndWaitForJobs("3600000", 0);
  driver.Signal(SIGINT);
  EXPECT_FALSE(driver.WaitFor(300'000'000)) << "it waits for the call";
  // Two signals may arrive as one, so this presses Ctrl-C until it has worked.
  for (int i = 0; i < 200 && !driver.WaitFor(300'000'000); ++i) driver.Signal(SIGINT);
  const auto left = cli_.Finish(driver);
  EXPECT_EQ(left.status.exit_code, 130) << left.err;
  EXPECT_THAT(left.err, HasSubstr("left, though a call had not returned: the same command goes on from here"));
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM jobs WHERE state = 'intent'"), 40) << "for the next run";
}

INSTANTIATE_TEST_SUITE_P(Ends, ScriptedEnd,
                         ::testing::Values(End{"refuses: no such partition, reason: rights, queue: 10", "", "",
                                               "no jobs are taken: launcher scripted: no such partition",
                                               "after you fix that: ridgeline run sweep.yaml\n"},
                                           End{"refuses: the queue is full, not_now: true", "launcher_timeout: 1, ", "",
                                               "the queue is full", "after you fix that: ridgeline run sweep.yaml\n"},
                                           End{"script: [missing]", "max_parallel: 2, retry: {lost: 0}, ", "",
                                               "2 of 2 points have no result",
                                               "run them again with: ridgeline run sweep.yaml\n"},
                                           End{"script: [ended]", "retry: {start: 0}, give_up_after: 1, ",
                                               "/nowhere/trainer", "it stopped when 1 jobs in a row failed alike",
                                               "run them again with: ridgeline run sweep.yaml\n"}));

TEST_F(Scripted, ShowsMeasuredPointsThoughTheLauncherIsLost) {
  Write("", "", "", "1");
  ASSERT_EQ(cli_.Run({"run", "sweep.yaml"}).status.exit_code, 0);
  Write("refuses: the queue is full, not_now: true", "launcher_timeout: 1, ");
  WriteFile(cli_.dir / "sweep.yaml", ReadFile(cli_.dir / "sweep.yaml") + "report: activation-checkpointing\n");
  const auto run = cli_.Run({"run", "sweep.yaml", "--reports", RIDGELINE_BINARY_DIR "/bin/reports"});
  EXPECT_EQ(run.status.exit_code, 3) << run.out << run.err;
  EXPECT_THAT(run.out, ContainsRegex("\n +1 +ok +[0-9]"));
  EXPECT_THAT(run.out, ContainsRegex("\n +2 +no result"));
  EXPECT_THAT(run.out, HasSubstr("1 ok, 1 without a result\n"));
  EXPECT_THAT(run.out, HasSubstr("report: "));
}

TEST_F(Scripted, JobsThatALostLauncherHasAreSaidToGoOn) {
  Write("script: [queued], queue: 10");
  ASSERT_EQ(cli_.Run({"run", "sweep.yaml", "--detach"}).status.exit_code, 0);
  Write("script: [queued], queue: 10, silent: true", "launcher_timeout: 1, ");
  const auto run = cli_.Run({"run", "sweep.yaml"});
  EXPECT_EQ(run.status.exit_code, 3) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("0 ok, 2 without a result\n2 jobs are left as they are; the next run adopts them\n"));
  EXPECT_THAT(run.err, HasSubstr("after you fix that: ridgeline run sweep.yaml\n"));
}

TEST_F(Scripted, APermanentRefusalIsAFaultOfTheInfrastructure) {
  Write("refuses: no such partition, reason: rights, queue: 10");
  EXPECT_EQ(cli_.Run({"run", "sweep.yaml"}).status.exit_code, 3);
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM results WHERE status = 'infrastructure' AND reason = 'rights'"), 2);
}

TEST_F(Scripted, StatusAsksOnceForJobsThatNobodyFollowsAndChangesNothing) {
  Write("script: [queued, queued, ended], queue: 10");
  const auto detached = cli_.Run({"run", "sweep.yaml", "--detach"});
  ASSERT_EQ(detached.status.exit_code, 0) << detached.err;
  EXPECT_EQ(PollsOfEach(), 0);
  const auto status = cli_.Run({"status"});
  EXPECT_EQ(status.status.exit_code, 0) << status.err;
  EXPECT_THAT(status.out, HasSubstr("Priority"));
  EXPECT_THAT(status.out, HasSubstr("no run follows these jobs"));
  EXPECT_EQ(PollsOfEach(), 1);
  const Json json = ParseJson(cli_.Run({"status", "-o", "json"}).out, "status");
  EXPECT_EQ(json.at("jobs").at(1).at("pending"), "Priority");
  EXPECT_EQ(PollsOfEach(), 2);
  const auto ended = cli_.Run({"status"});
  EXPECT_THAT(ended.out, Not(HasSubstr("Priority")));
  EXPECT_THAT(ended.out, HasSubstr("these jobs have their results: `ridgeline run` collects them"));
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM jobs WHERE state = 'submitted' AND evidence NOT LIKE '%Priority%'"), 2);
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM results"), 0);
  EXPECT_EQ(cli_.Run({"run", "sweep.yaml"}).status.exit_code, 0);
  ExpectOneResultAPoint(cli_, 2);
}

TEST_F(Scripted, NobodyWaitsForAJobThatEndedWithoutAResult) {
  Write("script: [ended], queue: 10", "", "/nowhere/trainer");
  ASSERT_EQ(cli_.Run({"run", "sweep.yaml", "--detach"}).status.exit_code, 0);
  for (const auto& point : std::filesystem::directory_iterator(cli_.dir / "ridgeline-out/jobs")) {
    std::filesystem::remove(point.path() / "job.json");  // so that exec cannot leave results
  }
  const auto watch = cli_.Run({"status", "--watch"});
  EXPECT_EQ(watch.status.exit_code, 0) << watch.err;
  EXPECT_THAT(watch.out, HasSubstr("these jobs have ended: `ridgeline run` collects what they left"));
}

TEST_F(Scripted, WatchingWithoutATerminalPrintsWhatIsNewAndEndsWithTheJobs) {
  Write("script: [queued, queued, queued, ended], queue: 10");
  ASSERT_EQ(cli_.Run({"run", "sweep.yaml", "--detach"}).status.exit_code, 0);
  const auto watch = cli_.Run({"status", "--watch"});
  EXPECT_EQ(watch.status.exit_code, 0) << watch.err;
  EXPECT_THAT(watch.out, HasSubstr("Priority"));
  size_t times = 0;
  for (size_t at = watch.out.find("native id"); at != std::string::npos; at = watch.out.find("native id", at + 1)) {
    ++times;
  }
  EXPECT_EQ(times, 2) << watch.out;
}

TEST_F(Scripted, ASchedulerThatCannotBeAskedHidesNothingOfTheStore) {
  Write("script: [queued], queue: 10");
  ASSERT_EQ(cli_.Run({"run", "sweep.yaml", "--detach"}).status.exit_code, 0);
  std::filesystem::remove_all(cli_.dir / "ridgeline.db.launchers");
  WriteFile(cli_.dir / "ridgeline.db.launchers", "no folder");
  const auto status = cli_.Run({"status"});
  EXPECT_EQ(status.status.exit_code, 0) << status.err;
  EXPECT_THAT(status.out, HasSubstr("how these jobs of scripted are could not be asked: "));
  EXPECT_THAT(status.out, HasSubstr("script-rl-"));
}

}  // namespace
}  // namespace ridgeline::cli
