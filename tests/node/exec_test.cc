// `ridgeline exec`, as a process of its own, over trainers that end in every way one can.
#include "node/exec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <sstream>

#include "base/cores.h"
#include "node/watch.h"
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

TEST_F(Exec, KeepsWhatTheTrainerMeasured) {
  const RunResult result = RunOne("ok");
  EXPECT_EQ(result.status, RunStatus::kOk);
  EXPECT_EQ(result.throughput.steady_tokens_per_s, 100);
  EXPECT_EQ(result.evidence.at("exit_code"), "0");
  EXPECT_GT(result.memory.rss_peak_bytes, 0);
  EXPECT_GT(result.started_unix_ns, 1'000'000'000'000'000'000);
  EXPECT_GT(result.ended_unix_ns, result.started_unix_ns);
  EXPECT_THAT(result.environment.at("command"), HasSubstr("fake_trainer ok"));
}

// The fake names its result by the spec that it is given.
TEST_F(Exec, RunsOneRepeatAsARunOfItsOwn) {
  Job job = MakeJob({"ok"});
  JobPoint& point = job.points[0];
  point.spec.repeats = 3;
  point.spec.checkpoint_dir = "checkpoints";
  point.id = PointId(point.spec);
  point.repeat = 2;
  EXPECT_EQ(SpecOfRun(point).repeats, 1);
  EXPECT_EQ(SpecOfRun(point).checkpoint_dir, "checkpoints/repeat-2") << "the first's would say that all is done";
  EXPECT_EQ(Run(job), 0) << Log();
  const RunResult result = ResultOf(job);
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  EXPECT_EQ(result.point_id, point.id);
  EXPECT_EQ(result.repeat, 2);
}

TEST_F(Exec, NamesAResultThatDoesNotNameItself) {
  const Job job = MakeJob({"no-id"});
  EXPECT_EQ(Run(job), 0);
  EXPECT_EQ(ResultOf(job).point_id, job.points[0].id);
  EXPECT_EQ(ResultOf(job).status, RunStatus::kOk);
}

TEST_F(Exec, AShellPassesTheSpecOn) {
  Job job = MakeJob({});
  job.trainer = {"bash", "-ec", "cd . && exec " + testing::FakeProgram("fake_trainer").string() + " ok \"$@\""};
  EXPECT_EQ(Run(job), 0) << Log();
  EXPECT_EQ(ResultOf(job).status, RunStatus::kOk) << ResultOf(job).message;
}

TEST_F(Exec, OneBadPointNeverStopsTheOthers) {
  const std::vector<std::pair<std::string, RunEnd>> ends = {
      {"exit=1", RunStatus::kCrashed},
      {"exit=2", RunStatus::kInvalid},
      {"exit=10", RunStatus::kOomDevice},
      {"exit=11", RunStatus::kOomHost},
      {"exit=12", RunStatus::kDiverged},
      {"exit=13", InfrastructureReason::kPreempted},
      {"exit=0", RunStatus::kCrashed},
      {"segfault", RunStatus::kCrashed},
      {"kill-self", RunStatus::kCrashed},
      {"half-result", RunStatus::kCrashed},
      {"not-a-result", RunStatus::kCrashed},
      {"wrong-id", RunStatus::kCrashed},
      {"ok-but-exit=3", RunStatus::kCrashed},
      {"status=oom_host", RunStatus::kOomHost},
      {"status=invalid", RunStatus::kInvalid},
      {"status=lost", RunStatus::kCrashed},
      {"not-finite", RunStatus::kDiverged},
      {"log=1000", RunStatus::kCrashed},
      {"ok", RunStatus::kOk},
  };
  std::vector<std::string> modes;
  for (const auto& [mode, status] : ends) modes.push_back(mode);
  const Job job = MakeJob(modes, static_cast<int64_t>(ends.size()));
  EXPECT_EQ(Run(job), 0) << Log();
  for (size_t i = 0; i < ends.size(); ++i) {
    const RunResult result = ResultOf(job, i);
    EXPECT_EQ(EndOf(result), ends[i].second) << ends[i].first << ": " << result.message;
    EXPECT_EQ(result.point_id, job.points[i].id);
    EXPECT_EQ(result.message.empty(), result.status == RunStatus::kOk) << ends[i].first;
    EXPECT_EQ(result.evidence.count("exit_code") + result.evidence.count("signal"), 1U) << ends[i].first;
    const bool refused = ends[i].first == "half-result" || ends[i].first == "not-a-result" ||
                         ends[i].first == "wrong-id" || ends[i].first == "status=lost" || ends[i].first == "exit=0";
    EXPECT_EQ(result.hint.find("docs/trainer-contract.md") != std::string::npos, refused)
        << ends[i].first << result.hint;
  }
}

TEST_F(Exec, KeepsOnlyTheTailOfALongLog) {
  const RunResult result = RunOne("log=10000000");
  EXPECT_EQ(result.status, RunStatus::kCrashed);
  const std::string& tail = result.evidence.at("log_tail");
  EXPECT_LE(tail.size(), 5000U);
  EXPECT_THAT(tail, HasSubstr("the last words"));
}

TEST_F(Exec, ASignalIsEvidence) {
  const RunResult result = RunOne("segfault");
  EXPECT_EQ(result.evidence.at("signal"), "11");
  EXPECT_THAT(result.message, HasSubstr("Segmentation fault"));
}

TEST_F(Exec, TheTimeLimitEndsAPointThatSleeps) {
  Job job = MakeJob({"sleep", "ok"}, 2);
  job.points[0].time_limit_s = 1;
  EXPECT_EQ(Run(job), 0);
  const RunResult result = ResultOf(job, 0);
  EXPECT_EQ(result.status, RunStatus::kTimeout);
  EXPECT_EQ(result.evidence.at("signal"), std::to_string(SIGTERM));
  EXPECT_EQ(result.evidence.at("time_limit_s"), "1");
  EXPECT_GE(result.ended_unix_ns - result.started_unix_ns, 1'000'000'000);
  EXPECT_EQ(ResultOf(job, 1).status, RunStatus::kOk);
}

TEST_F(Exec, TheTimeLimitEndsAPointThatIgnoresSigterm) {
  Job job = MakeJob({"ignore-term"});
  job.points[0].time_limit_s = 1;
  EXPECT_EQ(Run(job, 50), 0);
  EXPECT_EQ(ResultOf(job).status, RunStatus::kTimeout);
  EXPECT_EQ(ResultOf(job).evidence.at("signal"), std::to_string(SIGKILL));
}

TEST_F(Exec, ATimeoutIsATimeoutWhateverTheTrainerCallsIt) {
  Job job = MakeJob({"preempted-on-term", "ok-on-term"}, 2);
  job.points[0].time_limit_s = job.points[1].time_limit_s = 1;
  EXPECT_EQ(Run(job), 0);
  EXPECT_EQ(ResultOf(job, 0).status, RunStatus::kTimeout);
  EXPECT_EQ(ResultOf(job, 1).status, RunStatus::kOk);  // it finished while it was being stopped
}

TEST_F(Exec, TheMemoryLimitEndsAPointThatEats) {
  Job job = MakeJob({"eat", "ok"}, 2);
  job.memory_limit_bytes = 300'000'000;
  EXPECT_EQ(Run(job), 0);
  const RunResult result = ResultOf(job, 0);
  EXPECT_EQ(result.status, RunStatus::kOomHost);
  EXPECT_GT(std::stoll(result.evidence.at("rss_bytes")), job.memory_limit_bytes);
  EXPECT_LT(std::stoll(result.evidence.at("rss_bytes")), 2 * job.memory_limit_bytes);
  EXPECT_EQ(result.evidence.at("memory_limit_bytes"), "300000000");
  EXPECT_GE(result.memory.rss_peak_bytes, std::stoll(result.evidence.at("rss_bytes")));
  EXPECT_EQ(ResultOf(job, 1).status, RunStatus::kOk);
}

TEST_F(Exec, TellsTheTrainerItsProgressFileAndItsCores) {
  Job job = MakeJob({"environment"});
  job.cpus = 1;
  job.keep_logs = true;
  EXPECT_EQ(Run(job), 0);
  const std::string log = ReadFile(PointDir(job.job_dir, job.points[0].id) / "log.txt");
  EXPECT_THAT(log, HasSubstr("RIDGELINE_PROGRESS=" + ProgressFile(job.job_dir, job.points[0].id).string() + "\n"));
  EXPECT_THAT(log, HasSubstr("OMP_NUM_THREADS=1\n"));
  EXPECT_THAT(log, HasSubstr("OMP_WAIT_POLICY=passive\n"));
}

// Two jobs of a node that see the same cores, as pods do, would both be on the first of them.
TEST_F(Exec, PinsPointsOnlyToCoresThatAreTheJobsOwn) {
  ::unsetenv("OMP_WAIT_POLICY");  // these tests' own
  const std::vector<int> ours = CoresAllowed().ids;
  Job job = MakeJob({"environment"});
  job.cpus = 1;
  job.keep_logs = true;
  std::string log;
  const auto cores_of = [&](const std::string& given) {
    EXPECT_EQ(Run(job, 10'000, {{kOwnCoresVariable, given}}), 0) << Log();
    log = ReadFile(PointDir(job.job_dir, job.points[0].id) / "log.txt");
    EXPECT_THAT(log, HasSubstr("OMP_NUM_THREADS=1\n"));
    std::filesystem::remove(ResultsFile(job.job_dir));
    std::istringstream lines(log);
    std::vector<int> cores;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("core ")) cores.push_back(std::stoi(line.substr(5)));
    }
    return cores;
  };
  EXPECT_EQ(cores_of(""), ours);
  EXPECT_THAT(log, HasSubstr("OMP_WAIT_POLICY=passive\nGOMP_SPINCOUNT=\n")) << "what they would spin on is another's";
  std::string list;
  for (const int core : ours) list += (list.empty() ? "" : ",") + std::to_string(core);
  EXPECT_EQ(cores_of(list), std::vector<int>{ours.front()});
  EXPECT_THAT(log, HasSubstr("OMP_WAIT_POLICY=\nGOMP_SPINCOUNT=10000\n"));
}

TEST_F(Exec, GivesTheTrainerTheJobsEnvironment) {
  Job job = MakeJob({"environment"});
  job.cpus = 1;
  job.keep_logs = true;
  job.environment = {{"OMP_WAIT_POLICY", "active"}, {"OMP_NUM_THREADS", "3"}, {"RIDGELINE_PROGRESS", "/elsewhere"}};
  ASSERT_EQ(Run(job), 0) << Log();
  const std::string log = ReadFile(PointDir(job.job_dir, job.points[0].id) / "log.txt");
  EXPECT_THAT(log, HasSubstr("OMP_NUM_THREADS=3\n"));
  EXPECT_THAT(log, HasSubstr("OMP_WAIT_POLICY=active\nGOMP_SPINCOUNT=\n"));
  EXPECT_THAT(log, HasSubstr("RIDGELINE_PROGRESS=" + job.job_dir.string())) << "what a run needs is ours to say";
}

TEST_F(Exec, ATrainerInheritsNoDescriptorOfOurs) {
  Job job = MakeJob({"environment"});
  job.keep_logs = true;
  WriteJob(job);
  const auto lock = FileLock::Try(dir_.path() / "launcher.lock");
  SpawnOptions options;
  options.inherit_fds = {lock->fd()};
  options.stdout_file = dir_.path() / "exec.log";
  ASSERT_TRUE(Child::Spawn({FakeProgram("mini_ridgeline"), "exec", JobFile(job)}, options).Wait().ok());
  const std::string log = ReadFile(PointDir(job.job_dir, job.points[0].id) / "log.txt");
  EXPECT_THAT(log, Not(HasSubstr("open ")));
}

TEST_F(Exec, EndsWhatATrainerLeavesRunning) {
  const Job job = MakeJob({"grandchildren"});
  EXPECT_EQ(Run(job), 0);
  EXPECT_EQ(ResultOf(job).status, RunStatus::kOk);
  EXPECT_TRUE(ProcessesWith(dir_.path()).empty());
}

TEST_F(Exec, ToldToStopItEndsThePointThatRunsAndNoOther) {
  const Job job = MakeJob({"ok", "sleep", "ok"}, 3);
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) {
    WriteJob(job);
    std::filesystem::remove(PointDir(job.job_dir, job.points[1].id) / "log.txt");  // of the signal before
    Child exec = Start(job);
    ASSERT_TRUE(Eventually([&] { return !ProcessesWith("fake_trainer").empty() && FindResult(job, 0); }));
    ASSERT_TRUE(
        Eventually([&] { return std::filesystem::exists(PointDir(job.job_dir, job.points[1].id) / "log.txt"); }));
    exec.Signal(signal);
    EXPECT_EQ(exec.Wait().exit_code, 130);
    // Whoever takes the node away says SIGTERM; a person presses Ctrl-C.
    const RunEnd end = signal == SIGINT ? RunEnd(RunStatus::kCancelled) : RunEnd(InfrastructureReason::kPreempted);
    EXPECT_EQ(EndOf(ResultOf(job, 1)), end) << signal;
    EXPECT_FALSE(FindResult(job, 2));
    EXPECT_TRUE(NothingIsLeft());
  }
  Job again = job;  // and run again, it goes on
  again.trainer[2] = "ok";
  EXPECT_EQ(Run(again), 0);
  EXPECT_THAT(Log(), HasSubstr("ran 2 skipped 1"));
  EXPECT_EQ(ResultOf(job, 1).status, RunStatus::kOk);
}

// Shared file systems run out of files before they run out of room.
TEST_F(Exec, LeavesAsManyFilesForManyPointsAsForOne) {
  const auto files_after = [&](const std::string& mode, int64_t points, bool keep_logs) {
    const TempDir dir;
    Job job = TestJob(dir.path() / "rl-test", {mode}, points);
    job.keep_logs = keep_logs;
    EXPECT_EQ(Run(job), 0) << Log();
    for (size_t i = 0; i < job.points.size(); ++i) EXPECT_TRUE(FindResult(job, i));
    const std::filesystem::recursive_directory_iterator all(job.job_dir);
    return std::distance(begin(all), end(all));
  };
  EXPECT_EQ(files_after("ok", 1, false), 4);  // job.json, results.log, exec.lock and points/
  EXPECT_EQ(files_after("ok", 30, false), 4);
  EXPECT_EQ(files_after("ok", 3, true), 4 + 2 * 3);       // its folder and its log
  EXPECT_EQ(files_after("exit=1", 3, false), 4 + 2 * 3);  // the same, where it did not end well
}

// Whatever a trainer leaves in the place of its result: a sentence, and neither a wait nor a giant in memory.
TEST_F(Exec, WhatIsNoResultFileIsACrashAndASentence) {
  const std::pair<const char*, const char*> cases[] = {
      {"pipe", "its result is a named pipe, not a regular file"},
      {"link", "its result is a symbolic link, not a regular file"},
      {"folder", "its result is a folder, not a regular file"},
      {"giant", "its result has 1099511627776 bytes, and may have 8388608"},
      {"message", "its result has 209715250 bytes, and may have 8388608"},
      {"depths", "its result: not JSON: lists and objects in each other, more than 64 deep"},
      {"closed-depths", "its result: not JSON: lists and objects in each other, more than 64 deep"},
  };
  std::vector<std::string> modes;
  for (const auto& [what, says] : cases) modes.push_back(std::string("result-is=") + what);
  modes.emplace_back("ok");
  const Job job = MakeJob(modes, static_cast<int64_t>(modes.size()));
  EXPECT_EQ(Run(job), 0) << Log();
  for (size_t i = 0; i < std::size(cases); ++i) {
    const RunResult result = ResultOf(job, i);
    EXPECT_EQ(result.status, RunStatus::kCrashed) << cases[i].first;
    EXPECT_EQ(result.message, std::string("the trainer ended with exit code 0; ") + cases[i].second);
    EXPECT_THAT(result.hint, HasSubstr("trainer-contract.md")) << cases[i].first;
  }
  EXPECT_EQ(ResultOf(job, modes.size() - 1).status, RunStatus::kOk);
}

// Its log and its progress, too. What an attempt left so is no trouble of the next one's.
TEST_F(Exec, WhatIsNoLogIsReadByNobody) {
  for (const char* what : {"pipe", "link", "folder", "giant"}) {
    const Job job = MakeJob({std::string("files-are=") + what, "ok"}, 2);
    std::filesystem::remove_all(job.job_dir);
    EXPECT_EQ(Run(job), 0) << Log();
    EXPECT_EQ(ResultOf(job).status, RunStatus::kCrashed) << what;
    const bool regular = what == std::string("giant");
    EXPECT_EQ(ResultOf(job).evidence.contains("log_tail"), regular) << what;
    EXPECT_EQ(ResultOf(job, 1).status, RunStatus::kOk) << what;
    std::filesystem::remove(ResultsFile(job.job_dir));
    EXPECT_EQ(Run(job), 0) << Log();
    EXPECT_EQ(ResultOf(job).status, RunStatus::kCrashed) << what;
  }
}

TEST_F(Exec, AResultThatCannotBeTrueIsACrashAndASentence) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"version": 1, "status": "ok"})", "its result says 'ok' without a figure that an ok needs: step_ns.all, "},
      {R"({"version": 1, "status": "ok", "step_ns": {"all": [1, 2]}})",
       "its result cannot be true: step_ns.all has 2 numbers, and the point has 7 steps, warm-up included"},
      {R"({"version": 1, "status": "ok", "step_ns": {"median": 7, "p95": 6}})",
       "its result cannot be true: step_ns.p95 is 6, and step_ns.median 7"},
      {R"({"version": 1, "status": "ok", "step_ns": {"median": 1.5}})",
       "its result: not a RunResult: step_ns.median is 1.5, which is not written as a whole number"},
  };
  for (const auto& [text, says] : cases) {
    const RunResult result = RunOne("writes=" + text);
    EXPECT_EQ(result.status, RunStatus::kCrashed) << text;
    EXPECT_THAT(result.message, HasSubstr("the trainer ended with exit code 0; " + says));
    std::filesystem::remove_all(dir_.path() / "rl-test");
  }
}

TEST_F(Exec, RefusesAWrongJobFile) {
  const Job job = MakeJob({"ok"});
  WriteJob(job);
  const auto refused = [&](const std::string& text) {
    std::ofstream(JobFile(job)) << text;
    EXPECT_EQ(Start(job).Wait().exit_code, 2) << text;
    return Log();
  };
  EXPECT_THAT(refused("{"), HasSubstr("job.json"));
  EXPECT_THAT(refused("{}"), HasSubstr("not a job file of version 1"));
  Json document = EncodeJob(job);
  document["points"][0]["id"] = "../../escape";
  EXPECT_THAT(refused(document.dump()), HasSubstr("'../../escape' cannot be a point's id"));
  EXPECT_EQ(Run(TestJob(dir_.path() / "empty", {"ok"}, 0)), 0);  // nothing to do is no fault
}

TEST_F(Exec, AFullDiskStopsTheJobAndLosesNothing) {
  const Job job = MakeJob({"ok"}, 2);
  EXPECT_EQ(Run(MakeJob({"ok"})), 0);  // the first of the two
  std::filesystem::create_directories(job.job_dir / "points");
  // A folder that cannot be written stands for a disk that is full: nothing of the second point can be made.
  const auto blocked = PointDir(job.job_dir, job.points[1].id);
  std::ofstream(blocked) << "a file where a folder must be";
  EXPECT_EQ(Run(job), 3);
  EXPECT_THAT(Log(), HasSubstr("cannot make the folder"));
  EXPECT_EQ(ResultOf(job, 0).status, RunStatus::kOk);
  std::filesystem::remove(blocked);
  EXPECT_EQ(Run(job), 0);
  EXPECT_EQ(ResultOf(job, 1).status, RunStatus::kOk);
}

}  // namespace
}  // namespace ridgeline
