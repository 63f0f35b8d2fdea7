// `ridgeline exec`, as a separate process, with trainers that end in every possible way.
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

namespace ridgeline::node {
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

// The fake names its result after the spec that it gets.
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

// Otherwise two jobs of a node that see the same cores, as pods do, would both be on the first of them.
TEST_F(Exec, PinsPointsOnlyToCoresThatAreTheJobsOwn) {
  ::unsetenv("OMP_WAIT_POLICY");  // set by these tests themselves
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
    std::filesystem::remove(PointDir(job.job_dir, job.points[1].id) / "log.txt");  // left from the previous signal
    Child exec = Start(job);
    ASSERT_TRUE(Eventually([&] { return !ProcessesWith("fake_trainer").empty() && FindResult(job, 0); }));
    ASSERT_TRUE(
        Eventually([&] { return std::filesystem::exists(PointDir(job.job_dir, job.points[1].id) / "log.txt"); }));
    exec.Signal(signal);
    EXPECT_EQ(exec.Wait().exit_code, 130);
    // SIGTERM means that the node is taken away; SIGINT is a person's Ctrl-C.
    const RunEnd end = signal == SIGINT ? RunEnd(RunStatus::kCancelled) : RunEnd(InfrastructureReason::kPreempted);
    EXPECT_EQ(EndOf(ResultOf(job, 1)), end) << signal;
    EXPECT_FALSE(FindResult(job, 2));
    EXPECT_TRUE(NothingIsLeft());
  }
  Job again = job;  // when it is run again, it continues
  again.trainer[2] = "ok";
  EXPECT_EQ(Run(again), 0);
  EXPECT_THAT(Log(), HasSubstr("ran 2 skipped 1"));
  EXPECT_EQ(ResultOf(job, 1).status, RunStatus::kOk);
}

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
  // A kill cut the second line, and the next attempt continued after it.
  std::ofstream(ResultsFile(job.job_dir)) << lines[0] << lines[1].substr(0, 100) << '\n' << other << not_a_result;
  EXPECT_EQ(Run(job), 0);
  EXPECT_THAT(Log(), HasSubstr("ran 3 skipped 1"));
  EXPECT_TRUE(ReadFile(ResultsFile(job.job_dir)).starts_with(lines[0]));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(ResultOf(job, i).point_id, job.points[i].id);
}

// Shared file systems run out of files before they run out of space.
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
  EXPECT_EQ(files_after("ok", 3, true), 4 + 2 * 3);       // its folder and log
  EXPECT_EQ(files_after("exit=1", 3, false), 4 + 2 * 3);  // the same if it did not end well
}

TEST_F(Exec, CleansUpAfterAKilledExec) {
  const Job job = MakeJob({"ok"});
  EXPECT_EQ(Run(job), 0);
  EXPECT_FALSE(IsThere(DirOf(job)));
  MakeDirs(DirOf(job));  // killed after its line was on the disk
  const auto leave = [&](const std::vector<const char*>& files) {
    for (const char* file : files) std::ofstream(DirOf(job) / file) << "x";
  };
  leave({"spec.json", "result.json", "log.txt", "progress"});
  EXPECT_EQ(Run(job), 0);
  EXPECT_THAT(Log(), HasSubstr("ran 0 skipped 1"));
  EXPECT_FALSE(IsThere(DirOf(job)));
  MakeDirs(DirOf(job));  // killed while it or its trainer wrote them, or tested whether anything can be written
  leave({".spec.json.77-0", ".result.json.78-0", "exec.check"});
  EXPECT_EQ(Run(job), 0);
  EXPECT_FALSE(IsThere(DirOf(job)));
}

TEST_F(Exec, ResultsThatAreNoRegularFileEndNothing) {
  const Job job = MakeJob({"ok"});
  WriteJob(job);
  ASSERT_EQ(::mkfifo(ResultsFile(job.job_dir).c_str(), 0600), 0);  // opening it would block forever
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
  job.trainer = {FakeProgram("fake_trainer"), "exit=0"};  // writes no result; the old one still exists
  EXPECT_EQ(Run(job), 0);
  EXPECT_EQ(ResultOf(job).status, RunStatus::kCrashed);
}

// The scheduler has lost sight of the node that runs it.
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

// Anything that a trainer leaves in the place of its result leads to a message, without waiting and without much
// memory.
TEST_F(Exec, ABadResultFileIsACrashWithASentence) {
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

// The same for its log and its progress. What an attempt left so does not affect the next one.
TEST_F(Exec, DoesNotReadALogThatIsNoRegularFile) {
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
  EXPECT_EQ(Run(TestJob(dir_.path() / "empty", {"ok"}, 0)), 0);  // having nothing to do is no fault
}

TEST_F(Exec, AFullDiskStopsTheJobAndLosesNothing) {
  const Job job = MakeJob({"ok"}, 2);
  EXPECT_EQ(Run(MakeJob({"ok"})), 0);  // the first of the two
  std::filesystem::create_directories(job.job_dir / "points");
  // A folder that cannot be written stands for a full disk: nothing of the second point can be created.
  const auto blocked = PointDir(job.job_dir, job.points[1].id);
  std::ofstream(blocked) << "a file where a folder must be";
  EXPECT_EQ(Run(job), 3);
  EXPECT_THAT(Log(), HasSubstr("cannot make the folder"));
  EXPECT_EQ(ResultOf(job, 0).status, RunStatus::kOk);
  std::filesystem::remove(blocked);
  EXPECT_EQ(Run(job), 0);
  EXPECT_EQ(ResultOf(job, 1).status, RunStatus::kOk);
}

// exec or its trainer is killed at any moment, and exec is run again until it finishes. Then every point has one whole
// result.
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

// As by a node whose controller has forgotten the job: it kills all of the job's processes, one after another.
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

// A running job whose points have checkpoint files. Its trainer gets the signals below.
class Preempted : public Exec {
 protected:
  Job SavingJob(const std::vector<std::string>& modes, int64_t points = 1) {
    Job job = MakeJob(modes, points);
    for (JobPoint& point : job.points) point.spec.checkpoint_dir = "state";
    WriteJob(job);
    return job;
  }
  // Sends the signals once the first point's trainer is ready. Returns exec's exit code.
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
  Job job = SavingJob({"ignore-term"});  // would use the whole time to save
  job.save_time_s = 600;
  WriteJob(job);
  EXPECT_EQ(Tell(job, {SIGINT}), 130);
  EXPECT_EQ(ResultOf(job).status, RunStatus::kCancelled);
  EXPECT_EQ(ResultOf(job).evidence.at("signal"), std::to_string(SIGINT));
  EXPECT_EQ(Tell(job, {SIGTERM, SIGINT}), 130);  // while it saves
  EXPECT_EQ(ResultOf(job).status, RunStatus::kCancelled);
  std::ofstream(CancelFile(job.job_dir)).flush();  // a canceller leaves this file, whatever its launcher's signal is
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
  job.save_time_s = 600;  // for trainers that have something to save
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
}  // namespace ridgeline::node
