// A job that `ridgeline exec` runs again: after it was killed, or told that its node is taken away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <random>

#include "tests/node/exec_fixture.h"

namespace ridgeline {
namespace {

using testing::Eventually;
using testing::FakeProgram;
using testing::FindResult;
using ::testing::HasSubstr;
using testing::ProcessesWith;
using testing::ResultOf;
using testing::TestJob;
using testing::WriteJob;

TEST_F(Exec, SkipsFinishedPointsAndMakesWholeTheOthers) {
  const Job job = MakeJob({"ok"}, 4);
  EXPECT_EQ(Run(job), 0);
  std::vector<std::string> lines;
  std::ifstream in(ResultsFile(job.job_dir));
  for (std::string line; std::getline(in, line);) lines.push_back(line + '\n');
  ASSERT_EQ(lines.size(), 4U);
  std::string other = lines[2];
  other.replace(other.find(job.points[2].id), job.points[2].id.size(), "another");
  const std::string not_a_result = FormatJobLine({std::string(kResultLine), job.points[3].id, "{\"version\": 99}"});
  // The second was cut by a kill, where the next one went on.
  std::ofstream(ResultsFile(job.job_dir)) << lines[0] << lines[1].substr(0, 100) << '\n' << other << not_a_result;
  EXPECT_EQ(Run(job), 0);
  EXPECT_THAT(Log(), HasSubstr("ran 3 skipped 1"));
  EXPECT_TRUE(ReadFile(ResultsFile(job.job_dir)).starts_with(lines[0]));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(ResultOf(job, i).point_id, job.points[i].id);
}

TEST_F(Exec, SkipsWhatAnEarlierVersionFinished) {
  const Job job = MakeJob({"ok"}, 2);
  EXPECT_EQ(Run(job), 0);
  const std::string first = DumpJson(EncodeResult(ResultOf(job)));
  std::filesystem::remove(ResultsFile(job.job_dir));
  MakeDirs(ResultsDir(job.job_dir));
  WriteFileAtomic(ResultFile(job.job_dir, job.points[0].id), first);
  WriteFileAtomic(ResultFile(job.job_dir, job.points[1].id), first.substr(0, 100));
  EXPECT_EQ(Run(job), 0);
  EXPECT_THAT(Log(), HasSubstr("ran 1 skipped 1"));
  EXPECT_FALSE(FindResult(job, 0));
  EXPECT_EQ(ResultOf(job, 1).status, RunStatus::kOk);
}

TEST_F(Exec, WhatAKilledOneLeftIsTidiedUpByTheNext) {
  const Job job = MakeJob({"ok"});
  EXPECT_EQ(Run(job), 0);
  EXPECT_FALSE(IsThere(DirOf(job)));
  MakeDirs(DirOf(job));  // killed when its line was on the disk
  const auto leave = [&](const std::vector<const char*>& files) {
    for (const char* file : files) std::ofstream(DirOf(job) / file) << "x";
  };
  leave({"spec.json", "result.json", "log.txt", "progress"});
  EXPECT_EQ(Run(job), 0);
  EXPECT_THAT(Log(), HasSubstr("ran 0 skipped 1"));
  EXPECT_FALSE(IsThere(DirOf(job)));
  MakeDirs(DirOf(job));  // killed while it, or its trainer, wrote them, or looked whether anything can be written
  leave({".spec.json.77-0", ".result.json.78-0", "exec.check"});
  EXPECT_EQ(Run(job), 0);
  EXPECT_FALSE(IsThere(DirOf(job)));
}

TEST_F(Exec, ResultsThatAreNoRegularFileEndNothing) {
  const Job job = MakeJob({"ok"});
  WriteJob(job);
  ASSERT_EQ(::mkfifo(ResultsFile(job.job_dir).c_str(), 0600), 0);  // whoever opened it would wait for ever
  EXPECT_EQ(Run(job), 3);
  EXPECT_THAT(Log(), HasSubstr("not a regular file"));
  std::filesystem::remove(ResultsFile(job.job_dir));
  std::ofstream(dir_ / "elsewhere") << "precious";
  std::filesystem::create_symlink(dir_ / "elsewhere", ResultsFile(job.job_dir));
  EXPECT_EQ(Run(job), 3);
  EXPECT_EQ(ReadFile(dir_ / "elsewhere"), "precious");
}

TEST_F(Exec, TakesNothingOfAnEarlierAttemptForItsOwn) {
  Job job = MakeJob({"ok"});
  MakeDirs(DirOf(job));
  EXPECT_EQ(Run(job), 0);
  const std::string result = DumpJson(EncodeResult(ResultOf(job)));
  std::filesystem::remove(ResultsFile(job.job_dir));
  MakeDirs(DirOf(job));
  WriteFileAtomic(DirOf(job) / kTrainersResultName, result);
  job.trainer = {FakeProgram("fake_trainer"), "exit=0"};  // writes no result; the old one still lies there
  EXPECT_EQ(Run(job), 0);
  EXPECT_EQ(ResultOf(job).status, RunStatus::kCrashed);
}

// As where a scheduler lost sight of the node that runs it.
TEST_F(Exec, AJobThatRunsAlreadyIsWaitedForAndNotRunTwice) {
  const Job job = MakeJob({"slow=50"});
  WriteJob(job);
  Child first = Start(job);
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(PointDir(job.job_dir, job.points[0].id) / "log.txt"); }));
  Child second = Start(job);
  EXPECT_EQ(first.Wait().exit_code, 0);
  EXPECT_EQ(second.Wait().exit_code, 0);
  EXPECT_THAT(Log(), HasSubstr("ran 0 skipped 1"));
}

// exec or its trainer is killed at any moment; run again until it is through, every point has one whole result.
TEST_F(Exec, KilledAtAnyMomentAndRunAgainEveryPointHasOneResult) {
  std::mt19937 random(7);
  for (const bool kill_trainer : {false, true}) {
    for (int round = 0; round < 8; ++round) {
      const TempDir dir;
      const Job job = TestJob(dir.path() / "rl-test", {"slow=3"}, 5);
      WriteJob(job);
      for (int attempt = 0;; ++attempt) {
        ASSERT_LT(attempt, 100);
        Child exec = Start(job);
        if (attempt < 3) {
          ::usleep(static_cast<useconds_t>(random() % 40'000));
          if (kill_trainer) {
            for (const pid_t pid : ProcessesWith((dir.path() / "rl-test/points").string())) ::kill(pid, SIGKILL);
          } else {
            exec.Signal(SIGKILL);
          }
        }
        const ExitStatus status = exec.Wait();
        ASSERT_TRUE(Eventually([&] { return ProcessesWith(dir.path()).empty(); })) << "an orphan stays";
        ResultsReader(job.job_dir).ReadNew([&](const JobLine& line) {
          EXPECT_NO_THROW(DecodeResult(ParseJson(line.payload, "a line"), "a line"));  // never a torn one
          return true;
        });
        if (status.ok()) break;
      }
      std::map<std::string, int> lines;
      ResultsReader(job.job_dir).ReadNew([&](const JobLine& line) { return ++lines[line.point_id] > 0; });
      for (size_t i = 0; i < job.points.size(); ++i) {
        const RunResult result = ResultOf(job, i);
        EXPECT_EQ(result.point_id, job.points[i].id);
        EXPECT_EQ(lines[result.point_id], 1);
        EXPECT_EQ(IsThere(DirOf(job, i)), result.status != RunStatus::kOk);
        if (kill_trainer && result.status != RunStatus::kOk) {
          EXPECT_EQ(result.evidence.at("signal"), "9");
        } else {
          EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
        }
      }
    }
  }
}

// As by a node whose controller has forgotten the job: it kills every process of it, one after another.
TEST_F(Exec, ATrainerThatIsKilledShortlyBeforeExecIsNoResult) {
  const Job job = MakeJob({"slow=600000"});
  WriteJob(job);
  Child exec = Start(job);
  const auto trainers = [&] { return ProcessesWith((job.job_dir / "points").string()); };
  ASSERT_TRUE(Eventually([&] { return !trainers().empty(); }));
  for (const pid_t pid : trainers()) ::kill(pid, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return trainers().empty(); }));
  ::usleep(200'000);
  exec.Signal(SIGKILL);
  EXPECT_EQ(exec.Wait().signal, SIGKILL);
  EXPECT_FALSE(FindResult(job));
}

// A job whose points have checkpoint files, running: its trainer is told by the signals below.
class Preempted : public Exec {
 protected:
  Job SavingJob(const std::vector<std::string>& modes, int64_t points = 1) {
    Job job = MakeJob(modes, points);
    for (JobPoint& point : job.points) point.spec.checkpoint_dir = "state";
    WriteJob(job);
    return job;
  }
  // Sends the signals once the first point's trainer is ready; what exec then exits with.
  int Tell(const Job& job, const std::vector<int>& signals, int64_t grace_ms = 10'000) {
    std::filesystem::remove(PointDir(job.job_dir, job.points[0].id) / "log.txt");
    Child exec = Start(job, grace_ms);
    EXPECT_TRUE(
        Eventually([&] { return !ReadTail(PointDir(job.job_dir, job.points[0].id) / "log.txt", 100).empty(); }));
    for (const int signal : signals) exec.Signal(signal);
    return exec.Wait().exit_code;
  }
};

TEST_F(Preempted, ASchedulersSignalIsPassedOnAndThePointIsPreempted) {
  const Job job = SavingJob({"preempted-on-term", "ok"}, 2);
  for (const int signal : {SIGTERM, SIGUSR1}) {
    EXPECT_EQ(Tell(job, {signal}), 130);
    EXPECT_EQ(EndOf(ResultOf(job)), InfrastructureReason::kPreempted);
    EXPECT_EQ(ResultOf(job).evidence.at("exit_code"), "13");
    EXPECT_FALSE(FindResult(job, 1));
    EXPECT_TRUE(NothingIsLeft());
  }
}

TEST_F(Preempted, ItIsGivenTheJobsTimeToSaveAndNoMore) {
  Job job = SavingJob({"ignore-term"});
  job.save_time_s = 1;
  WriteJob(job);
  EXPECT_EQ(Tell(job, {SIGTERM}, 600'000), 130);
  EXPECT_EQ(EndOf(ResultOf(job)), InfrastructureReason::kPreempted);
  EXPECT_EQ(ResultOf(job).evidence.at("signal"), std::to_string(SIGKILL));
}

TEST_F(Preempted, ACancelIsACancelAndQuick) {
  Job job = SavingJob({"ignore-term"});  // would take the whole time to save
  job.save_time_s = 600;
  WriteJob(job);
  EXPECT_EQ(Tell(job, {SIGINT}), 130);
  EXPECT_EQ(ResultOf(job).status, RunStatus::kCancelled);
  EXPECT_EQ(ResultOf(job).evidence.at("signal"), std::to_string(SIGINT));
  EXPECT_EQ(Tell(job, {SIGTERM, SIGINT}), 130);  // while it saves
  EXPECT_EQ(ResultOf(job).status, RunStatus::kCancelled);
  std::ofstream(CancelFile(job.job_dir)).flush();  // who cancels leaves this, whatever its launcher's signal is
  for (const int signal : {SIGTERM, SIGUSR1, SIGHUP}) {
    EXPECT_EQ(Tell(job, {signal}), 130);
    EXPECT_EQ(ResultOf(job).status, RunStatus::kCancelled);
  }
}

TEST_F(Preempted, APointWithoutCheckpointFilesIsPreemptedTooAndQuickly) {
  Job job = MakeJob({"preempted-on-term"});
  WriteJob(job);
  for (const int signal : {SIGUSR1, SIGTERM}) {
    EXPECT_EQ(Tell(job, {signal}), 130);
    EXPECT_EQ(EndOf(ResultOf(job)), InfrastructureReason::kPreempted);
    EXPECT_FALSE(ResultOf(job).evidence.at("node").empty());
  }
  job = MakeJob({"ignore-term"});
  job.save_time_s = 600;  // of those that have something to save
  std::filesystem::remove_all(job.job_dir);
  WriteJob(job);
  EXPECT_EQ(Tell(job, {SIGTERM}, 50), 130);
  EXPECT_EQ(EndOf(ResultOf(job)), InfrastructureReason::kPreempted);
  EXPECT_EQ(ResultOf(job).evidence.at("signal"), std::to_string(SIGKILL));
}

TEST_F(Preempted, ARelativeFolderIsThePointsOwnAndSurvivesAnAttempt) {
  const Job job = SavingJob({"ok"});
  const auto dir = PointDir(job.job_dir, job.points[0].id) / "state";
  std::filesystem::create_directories(dir);
  std::ofstream(dir / "kept") << "of an earlier attempt";
  EXPECT_EQ(Run(job), 0);
  EXPECT_EQ(ReadFile(dir / "kept"), "of an earlier attempt");
  EXPECT_EQ(ResultOf(job).status, RunStatus::kOk);
  EXPECT_FALSE(IsThere(DirOf(job) / "spec.json"));
}

}  // namespace
}  // namespace ridgeline
