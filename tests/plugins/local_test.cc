// The local launcher: what the conformance suite cannot ask of every launcher.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>

#include <fmt/format.h>

#include "base/process.h"
#include "common/failure.h"
#include "launch/launcher.h"
#include "local/config.h"
#include "local/lock.h"
#include "local/parse.h"
#include "local/render.h"
#include "node/exec.h"
#include "ridgeline/checksum.h"
#include "tests/base/flips.h"
#include "tests/fakes/test_job.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using testing::Eventually;
using testing::FakeProgram;
using ::testing::HasSubstr;
using testing::ProcessesWith;
using testing::TestJob;

const std::filesystem::path kPlugins = RIDGELINE_PLUGIN_DIR;

TEST(LocalLock, IsARegularFileAndNothingElse) {
  namespace fs = std::filesystem;
  const TempDir dir;
  fs::create_symlink(dir / "elsewhere", dir / "link");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "pipe"}) {
    EXPECT_THROW(local::Lock::Try(dir / name), plugin::Failure) << name;
    EXPECT_THROW(local::Lock::Held(dir / name), plugin::Failure) << name;
  }
  EXPECT_FALSE(fs::exists(dir / "elsewhere"));
  EXPECT_TRUE(local::Lock::Try(dir / "lock").has_value());
}

class Local : public ::testing::Test {
 protected:
  std::unique_ptr<launch::Launcher> Load(const Json& config = Json::object()) const {
    return launch::LoadLauncher("local", config, dir_.path() / "state", kPlugins);
  }
  launch::LaunchJob Shell(const std::string& key, const std::string& script) const {
    launch::LaunchJob job;
    job.key = key;
    job.exec = {"/bin/sh", "-c", script, dir_.path()};
    return job;
  }
  launch::LaunchJob Real(const Job& job) const { return launch::ToLaunchJob(job, FakeProgram("mini_ridgeline")); }

  void Submit(launch::Launcher& launcher, const launch::LaunchJob& job) const {
    const launch::Submission answer = launcher.Submit({&job, 1}).front();
    ASSERT_FALSE(answer.error) << answer.error->what();
  }
  static launch::JobState Poll(launch::Launcher& launcher, const std::string& key) {
    const launch::JobRef ref{key, ""};
    return launcher.PollMany({&ref, 1}).front();
  }
  static bool Cancel(launch::Launcher& launcher, const std::string& key) {
    const launch::JobRef ref{key, ""};
    return launcher.Cancel({&ref, 1}).front();
  }
  static launch::JobState WaitForEnd(launch::Launcher& launcher, const std::string& key) {
    launch::JobState state;
    EXPECT_TRUE(Eventually([&] {
      state = Poll(launcher, key);
      return state.phase == launch::JobPhase::kEnded;
    })) << launch::PhaseName(state.phase);
    return state;
  }
  std::string Text(const std::string& file) const {
    return std::filesystem::exists(dir_.path() / file) ? ReadFile(dir_.path() / file) : "";
  }
  // For a job's script: waits until Go() was called.
  static constexpr const char* kWaitForGo = "while [ ! -e \"$0/go\" ]; do sleep 0.01; done; ";
  void Go() const { std::ofstream(dir_.path() / "go") << ""; }
  bool Written(const std::string& file) const {
    return Eventually([&] { return !Text(file).empty(); });
  }
  std::filesystem::path JobFolder(const std::string& key) const { return dir_.path() / "state/jobs" / key; }

  TempDir dir_;
};

TEST_F(Local, AJobSurvivesTheDriverThatStartedIt) {
  const launch::LaunchJob job = Shell("rl-1", std::string(kWaitForGo) + "echo done > \"$0/out\"");
  const pid_t driver = ::fork();
  if (driver == 0) {
    Load()->Submit({&job, 1});
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(driver, &status, 0);
  ASSERT_EQ(WTERMSIG(status), SIGKILL);
  const auto launcher = Load();
  EXPECT_EQ(Poll(*launcher, "rl-1").phase, launch::JobPhase::kRunning);
  Go();
  EXPECT_EQ(WaitForEnd(*launcher, "rl-1").evidence.at("exit_code"), "0");
  EXPECT_EQ(Text("out"), "done\n");
}

TEST_F(Local, AJobHoldsNothingOfTheDriverOpen) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // not close-on-exec: as a careless library leaves it
  const auto launcher = Load();
  Submit(*launcher, Shell("rl-1", "ls -l /proc/$$/fd > \"$0/fds\"; sleep 600"));
  ::close(ends[1]);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // the end of the pipe: no other process has it open
  ::close(ends[0]);
  EXPECT_TRUE(Cancel(*launcher, "rl-1"));
  WaitForEnd(*launcher, "rl-1");
}

TEST_F(Local, WhileItsKeeperIsKilledTheJobIsAliveAndNotStartedAgain) {
  const auto launcher = Load();
  const launch::LaunchJob job =
      Shell("rl-1", "echo start >> \"$0/out\"; " + std::string(kWaitForGo) + "echo end >> \"$0/out\"");
  Submit(*launcher, job);
  ASSERT_TRUE(Written("out"));
  const pid_t keeper = std::atoi(Poll(*launcher, "rl-1").evidence.at("pid").c_str());
  ::kill(keeper, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return Poll(*launcher, "rl-1").phase == launch::JobPhase::kRunning; }));
  Submit(*launcher, job);
  Go();
  const launch::JobState state = WaitForEnd(*launcher, "rl-1");
  EXPECT_EQ(state.evidence.count("exit_code"), 0U);
  EXPECT_THAT(state.evidence.at("message"), HasSubstr("ended without a word"));
  EXPECT_EQ(Text("out"), "start\nend\n");
}

TEST_F(Local, AJobKilledWithItsKeeperCanBeSubmittedAgain) {
  const auto launcher = Load();
  const launch::LaunchJob job = Shell("rl-1", "echo start >> \"$0/out\"; [ -e \"$0/again\" ] || sleep 600");
  Submit(*launcher, job);
  ASSERT_TRUE(Written("out"));
  const pid_t keeper = std::atoi(Poll(*launcher, "rl-1").evidence.at("pid").c_str());
  ::kill(-keeper, SIGKILL);  // its group: the keeper, the shell and its sleep
  EXPECT_THAT(WaitForEnd(*launcher, "rl-1").evidence.at("message"), HasSubstr("they were killed"));
  std::ofstream(dir_.path() / "again") << "";
  Submit(*launcher, job);
  EXPECT_EQ(WaitForEnd(*launcher, "rl-1").evidence.at("exit_code"), "0");
  EXPECT_EQ(Text("out"), "start\nstart\n");
}

TEST_F(Local, AJobThatFailedIsStartedAgainWhenSubmittedAgain) {
  const auto launcher = Load();
  const launch::LaunchJob job = Shell("rl-1", "echo start >> \"$0/out\"; echo why >&2; exit 3");
  Submit(*launcher, job);
  const launch::JobState state = WaitForEnd(*launcher, "rl-1");
  EXPECT_EQ(state.evidence.at("exit_code"), "3");
  EXPECT_EQ(state.evidence.at("log_tail"), "why\n");
  Submit(*launcher, job);
  WaitForEnd(*launcher, "rl-1");
  EXPECT_EQ(Text("out"), "start\nstart\n");
}

TEST_F(Local, ASignalThatEndsAJobIsEvidence) {
  const auto launcher = Load();
  Submit(*launcher, Shell("rl-1", "kill -SEGV $$"));
  EXPECT_EQ(WaitForEnd(*launcher, "rl-1").evidence.at("signal"), std::to_string(SIGSEGV));
}

TEST_F(Local, RunsNoMoreJobsAtOnceThanItMay) {
  const auto launcher = Load({{"max_parallel", 1}});
  std::vector<launch::JobRef> refs;
  for (int i = 0; i < 4; ++i) {
    const std::string key = "rl-" + std::to_string(i);
    Submit(*launcher,
           Shell(key, "echo + >> \"$0/out\"; " + std::string(kWaitForGo) + "sleep 0.05; echo - >> \"$0/out\""));
    refs.push_back({key, ""});
  }
  EXPECT_EQ(Poll(*launcher, "rl-3").phase, launch::JobPhase::kQueued);
  Go();
  EXPECT_TRUE(Eventually([&] {
    const auto states = launcher->PollMany(refs);
    return std::all_of(states.begin(), states.end(),
                       [](const launch::JobState& s) { return s.phase == launch::JobPhase::kEnded; });
  }));
  EXPECT_EQ(Text("out"), "+\n-\n+\n-\n+\n-\n+\n-\n");
}

TEST_F(Local, AJobThatWaitsCanBeCancelledAndSubmittedAgain) {
  const auto launcher = Load({{"max_parallel", 1}});
  Submit(*launcher, Shell("rl-1", "echo on > \"$0/first\"; sleep 600"));
  const launch::LaunchJob second = Shell("rl-2", "echo start >> \"$0/out\"");
  Submit(*launcher, second);
  EXPECT_TRUE(Cancel(*launcher, "rl-2"));
  EXPECT_EQ(Poll(*launcher, "rl-2").evidence.at("end"), "cancelled");
  EXPECT_FALSE(Cancel(*launcher, "rl-2"));
  ASSERT_TRUE(Written("first"));
  EXPECT_TRUE(Cancel(*launcher, "rl-1"));
  WaitForEnd(*launcher, "rl-1");
  EXPECT_EQ(Poll(*launcher, "rl-2").phase, launch::JobPhase::kEnded);
  EXPECT_EQ(Text("out"), "");
  Submit(*launcher, second);
  const launch::JobState state = WaitForEnd(*launcher, "rl-2");
  EXPECT_EQ(state.evidence.count("end"), 0U);
  EXPECT_EQ(Text("out"), "start\n");
}

TEST_F(Local, ACancelThatComesAtOnceIsNotLost) {
  const auto launcher = Load();
  for (int i = 0; i < 20; ++i) {
    const std::string key = "rl-" + std::to_string(i);
    Submit(*launcher, Shell(key, "sleep 600"));
    ::usleep(static_cast<useconds_t>(i * 100));
    EXPECT_TRUE(Cancel(*launcher, key));
    EXPECT_EQ(WaitForEnd(*launcher, key).evidence.at("end"), "cancelled");
  }
}

TEST_F(Local, CancelNeverSignalsAProcessThatIsNotTheJobs) {
  const auto launcher = Load();
  Submit(*launcher, Shell("rl-1", "true"));
  WaitForEnd(*launcher, "rl-1");
  SpawnOptions options;
  options.new_process_group = true;
  options.die_with_parent = true;
  Child innocent = Child::Spawn({"/bin/sleep", "600"}, options);
  // Another process has the job's process number: the lock is held, and the start time differs.
  const auto lock = local::Lock::Try(JobFolder("rl-1") / "lock");
  ASSERT_TRUE(lock);
  std::ofstream(JobFolder("rl-1") / "started") << local::FormatStarted({innocent.pid(), 1, "0"});
  EXPECT_FALSE(Cancel(*launcher, "rl-1"));
  EXPECT_FALSE(innocent.Poll());
  innocent.Signal(SIGKILL);
  innocent.Wait();
}

// A damaged record is reported for its job. The launcher invents no other process and no other end, and does not start
// the job again.
TEST_F(Local, ADamagedRecordIsSaidAndItsJobNotStartedAgain) {
  const auto launcher = Load();
  for (const char* record : {"started", "exit"}) {
    for (const char* how : {"flipped", "pipe"}) {
      const std::string key = std::string("rl-") + record + how;
      Submit(*launcher, Shell(key, "echo start >> \"$0/" + key + "\""));
      EXPECT_EQ(WaitForEnd(*launcher, key).evidence.at("exit_code"), "0");
      const std::filesystem::path file = JobFolder(key) / record;
      std::string text = ReadFile(file);
      text[0] ^= 1;
      std::filesystem::remove(file);
      if (how == std::string("pipe")) {
        ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
      } else {
        WriteFile(file, text);
      }
      const launch::JobState state = Poll(*launcher, key);
      EXPECT_EQ(state.phase, launch::JobPhase::kEnded);
      EXPECT_EQ(Text(key), "start\n");
      if (record == std::string("started")) {
        EXPECT_EQ(state.evidence.at("exit_code"), "0") << "how it ended is known";
        continue;
      }
      EXPECT_EQ(state.evidence.at("end"), "infrastructure");
      EXPECT_EQ(state.evidence.at("reason"), "lost");
      EXPECT_THAT(state.evidence.at("message"),
                  HasSubstr(file.string() + (how == std::string("pipe") ? " is a named pipe" : " was changed")));
    }
  }
}

TEST_F(Local, ADamagedRequestIsSaidAndAnotherTakesItsPlace) {
  const auto launcher = Load({{"max_parallel", 1}});
  Submit(*launcher, Shell("rl-1", std::string(kWaitForGo)));
  const launch::LaunchJob second = Shell("rl-2", "echo start >> \"$0/out\"");
  Submit(*launcher, second);
  std::string text = ReadFile(JobFolder("rl-2") / "request");
  text[text.find("start")] ^= 1;
  WriteFile(JobFolder("rl-2") / "request", text);
  const launch::JobState state = Poll(*launcher, "rl-2");
  EXPECT_EQ(state.phase, launch::JobPhase::kEnded);
  EXPECT_THAT(state.evidence.at("message"), HasSubstr("request was changed since it was written"));
  Go();
  WaitForEnd(*launcher, "rl-1");
  Submit(*launcher, second);
  EXPECT_EQ(WaitForEnd(*launcher, "rl-2").evidence.at("exit_code"), "0");
  EXPECT_EQ(Text("out"), "start\n");
}

TEST_F(Local, AJobThatLivesAndWhoseProcessIsNotKnownIsNotCancelledInSilence) {
  const auto launcher = Load();
  Submit(*launcher, Shell("rl-1", std::string(kWaitForGo)));
  const std::string text = ReadFile(JobFolder("rl-1") / "started");
  WriteFile(JobFolder("rl-1") / "started", "9" + text);  // another process
  EXPECT_EQ(Poll(*launcher, "rl-1").phase, launch::JobPhase::kRunning);
  EXPECT_THROW(Cancel(*launcher, "rl-1"), Error);
  WriteFile(JobFolder("rl-1") / "started", text);
  EXPECT_TRUE(Cancel(*launcher, "rl-1"));
  WaitForEnd(*launcher, "rl-1");
}

TEST_F(Local, LeavesNoZombies) {
  const auto launcher = Load();
  Submit(*launcher, Shell("rl-1", "true"));
  const pid_t keeper = std::atoi(WaitForEnd(*launcher, "rl-1").evidence.at("pid").c_str());
  EXPECT_TRUE(Eventually([&] {
    Poll(*launcher, "rl-1");
    return ::kill(keeper, 0) != 0;
  }));
}

TEST_F(Local, PinsAJobToTheCoresOfItsSlot) {
  const auto launcher = Load({{"cpus", 1}});
  Submit(*launcher,
         Shell("rl-1", "(grep Cpus_allowed_list /proc/self/status; echo $RIDGELINE_OWN_CORES) > \"$0/out\""));
  const launch::JobState state = WaitForEnd(*launcher, "rl-1");
  const std::string cores = state.evidence.at("cpus");
  EXPECT_EQ(Text("out"), "Cpus_allowed_list:\t" + cores + "\n" + cores + "\n") << "and says that they are its own";
}

TEST_F(Local, JobsThatRunTogetherShareNoCore) {
  if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "one core";
  const auto launcher = Load({{"max_parallel", 2}, {"cpus", 1}});
  Submit(*launcher, Shell("rl-1", "sleep 600"));
  Submit(*launcher, Shell("rl-2", "sleep 600"));
  Submit(*launcher, Shell("rl-3", "sleep 600"));
  const launch::JobState first = Poll(*launcher, "rl-1");
  const launch::JobState second = Poll(*launcher, "rl-2");
  EXPECT_EQ(first.phase, launch::JobPhase::kRunning);
  EXPECT_EQ(second.phase, launch::JobPhase::kRunning);
  EXPECT_NE(first.evidence.at("cpus"), second.evidence.at("cpus"));
  EXPECT_EQ(Poll(*launcher, "rl-3").phase, launch::JobPhase::kQueued);
  Go();
  EXPECT_TRUE(Cancel(*launcher, "rl-2"));
  WaitForEnd(*launcher, "rl-2");
  EXPECT_EQ(Poll(*launcher, "rl-3").evidence.at("cpus"), second.evidence.at("cpus"));
  for (const char* key : {"rl-1", "rl-3"}) {
    EXPECT_TRUE(Cancel(*launcher, key));
    WaitForEnd(*launcher, key);
  }
}

TEST_F(Local, SaysWhatIsWrongWithItsConfiguration) {
  const auto message = [&](const Json& config) {
    try {
      Load(config)->Probe();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
      return e.message();
    }
    return std::string("no error");
  };
  EXPECT_THAT(message({{"max_parallel", 5000}}), HasSubstr("5000 jobs at once with 1 core each need 5000"));
  EXPECT_THAT(message({{"cpus", 5000}}), HasSubstr("1 job at once with 5000 cores each need 5000"));
  EXPECT_THAT(message({{"cpus", "two"}}), HasSubstr("launch: cpus is \"two\""));
  EXPECT_THAT(message({{"max_parallel", -1}}), HasSubstr("launch: max_parallel is -1"));
  EXPECT_THAT(message({{"local", {{"partition", "gpu"}}}}), HasSubstr("'partition' is not a setting"));
  const launch::LaunchJob job = [&] {
    launch::LaunchJob wide = Shell("rl-1", "true");
    wide.cpus = 5000;
    return wide;
  }();
  EXPECT_THAT(Load()->Submit({&job, 1}).front().error->message(), HasSubstr("needs 5000 cores"));
  EXPECT_THROW(Load()->Render({&job, 1}), Error) << "before anything is submitted, too";
  launch::LaunchJob two_nodes = Shell("rl-1", "true");
  two_nodes.nodes = 2;
  EXPECT_THAT(Load()->Submit({&two_nodes, 1}).front().error->message(), HasSubstr("this machine is one"));
  launch::LaunchJob own = Shell("rl-1", "true");
  own.config = {{"local", {{"partition", "gpu"}}}};
  EXPECT_THAT(Load()->Submit({&own, 1}).front().error->message(), HasSubstr("'partition' is not a setting"));
}

TEST_F(Local, TheTrainerDoesNotHoldTheJobsLock) {
  Job job = TestJob(dir_.path() / "rl-test", {"environment"});
  job.keep_logs = true;
  testing::WriteJob(job);
  const auto launcher = Load();
  Submit(*launcher, Real(job));
  EXPECT_EQ(WaitForEnd(*launcher, job.key).evidence.at("exit_code"), "0");
  EXPECT_THAT(ReadFile(PointDir(job.job_dir, job.points[0].id) / "log.txt"), Not(HasSubstr("open ")));
}

TEST_F(Local, KillingExecLeavesNoOrphan) {
  const Job job = TestJob(dir_.path() / "rl-test", {"grandchildren=forever"});
  testing::WriteJob(job);
  const auto launcher = Load();
  Submit(*launcher, Real(job));
  const std::string trainers = (job.job_dir / "points").string();
  // The trainer and two processes that it forked.
  ASSERT_TRUE(Eventually([&] { return ProcessesWith(trainers).size() >= 3; }));
  for (const pid_t pid : ProcessesWith(JobFile(job))) {
    if (ReadFile("/proc/" + std::to_string(pid) + "/comm") == "mini_ridgeline\n") ::kill(pid, SIGKILL);
  }
  EXPECT_EQ(WaitForEnd(*launcher, job.key).evidence.at("signal"), "9");
  EXPECT_TRUE(ProcessesWith(dir_.path()).empty());
}

// Whatever is killed at any moment: submit again until the job is done, and every point has one result.
TEST_F(Local, KilledAtAnyMomentAndSubmittedAgainEveryPointHasOneResult) {
  // LeakSanitizer looks for leaks from a second process when a program ends. If only that process is killed, the
  // program waits for its answer for ever. That hang is the sanitizer's, not ours.
  const char* sanitizer = std::getenv("ASAN_OPTIONS");
  ::setenv("ASAN_OPTIONS", (std::string(sanitizer == nullptr ? "" : sanitizer) + ":detect_leaks=0").c_str(), 1);
  std::mt19937 random(11);
  for (int round = 0; round < 6; ++round) {
    const TempDir dir;
    const Job job = TestJob(dir.path() / "rl-test", {"slow=3"}, 5);
    testing::WriteJob(job);
    const auto launcher = launch::LoadLauncher("local", Json::object(), dir.path() / "state", kPlugins);
    for (int attempt = 0;; ++attempt) {
      ASSERT_LT(attempt, 50);
      Submit(*launcher, Real(job));
      if (attempt < 3) {
        ::usleep(static_cast<useconds_t>(random() % 40'000));
        for (const pid_t pid : ProcessesWith(dir.path())) {  // the keeper, exec, the trainer: some of them
          if (random() % 2 == 0) ::kill(pid, SIGKILL);
        }
      }
      const launch::JobState state = WaitForEnd(*launcher, job.key);
      if (state.evidence.contains("exit_code") && state.evidence.at("exit_code") == "0") break;
    }
    EXPECT_TRUE(Eventually([&] { return ProcessesWith(dir.path()).empty(); }));
    for (size_t i = 0; i < job.points.size(); ++i) EXPECT_TRUE(testing::FindResult(job, i));
  }
}

TEST(LocalConfig, SharesTheCoresOut) {
  const std::vector<int> cores = {0, 2, 4, 6, 8};
  EXPECT_THAT(local::SlotCores(Json::object(), cores), ElementsAre(cores));
  EXPECT_THAT(local::SlotCores({{"max_parallel", 2}}, cores), ElementsAre(ElementsAre(0, 2), ElementsAre(4, 6)));
  EXPECT_THAT(local::SlotCores({{"max_parallel", 3}, {"cpus", 1}}, cores),
              ElementsAre(ElementsAre(0), ElementsAre(2), ElementsAre(4)));
  EXPECT_THAT(local::SlotCores({{"max_parallel", 0}, {"cpus", 0}}, {7}), ElementsAre(ElementsAre(7)));
  EXPECT_THROW(local::SlotCores({{"max_parallel", 2}, {"cpus", 3}}, cores), plugin::Failure);
  EXPECT_THROW(local::SlotCores({{"max_parallel", INT64_MAX}, {"cpus", INT64_MAX}}, cores), plugin::Failure);
}

TEST(LocalParse, StartTicksWhateverTheProgramIsCalled) {
  const std::string tail = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21";
  EXPECT_EQ(local::ParseStartTicks("17 (sleep)" + tail), 4242);
  EXPECT_EQ(local::ParseStartTicks("17 (a) R 99 (b c) )" + tail), 4242);
  EXPECT_EQ(local::ParseStartTicks(""), std::nullopt);
  EXPECT_EQ(local::ParseStartTicks("17 (sleep) S 1 2"), std::nullopt);
}

TEST(LocalParse, RecordsAreReadBackAndNothingElseIs) {
  const auto started = local::ParseStarted(local::FormatStarted({1234, 5678, "0,1"}));
  ASSERT_TRUE(started);
  EXPECT_EQ(started->pid, 1234);
  EXPECT_EQ(started->start_ticks, 5678);
  EXPECT_EQ(started->cores, "0,1");
  for (const char* text : {"", "0 5 0", "1 5 0", "-1 5 0", "x 5 0", "12"}) {
    // A group of 0, 1 or -1 would be ourselves, or everybody.
    EXPECT_FALSE(local::ParseStarted(SealedLine(text))) << text;
  }
  EXPECT_EQ(local::ParseExit(SealedLine("exit_code 3"))->exit_code, 3);
  EXPECT_EQ(local::ParseExit(SealedLine("signal 9"))->signal, 9);
  for (const char* text : {"", "exit_code", "exit_code x", "left 3"}) {
    EXPECT_FALSE(local::ParseExit(SealedLine(text))) << text;
  }
  for (const char* text : {"exit_code 3\n", ""}) EXPECT_FALSE(local::ParseExit(text)) << "no checksum";
}

TEST(LocalParse, EveryBitThatIsAnotherIsFound) {
  const auto read = [](auto parse, auto format) {
    return [=](const std::string& flipped) -> std::string {
      const auto record = parse(flipped);
      return record ? format(*record) : testing::kRefused + std::string("damaged");
    };
  };
  testing::ExpectFlipsFound("started", local::FormatStarted({1234, 5678, "0,1"}), 200,
                            read(local::ParseStarted, local::FormatStarted));
  testing::ExpectFlipsFound("exit", SealedLine("exit_code 0"), 200, read(local::ParseExit, [](const local::Exit& exit) {
                              return fmt::format("{} {}", exit.exit_code, exit.signal);
                            }));
  testing::ExpectFlipsFound(
      "request", local::FormatRequest({{"key", "rl-1"}, {"exec", {"/bin/true", "a word"}}}), 200,
      read(local::ParseRequest, [](const plugin::Json& job) { return job.at("key").dump() + job.at("exec").dump(); }));
}

TEST(LocalParse, StateOfWhatIsSeen) {
  local::Seen seen;
  EXPECT_EQ(ToJson(local::StateOf(seen)).at("state"), "missing");
  seen.submitted = true;
  EXPECT_EQ(ToJson(local::StateOf(seen)).at("state"), "queued");
  seen.cancelled = true;
  EXPECT_EQ(ToJson(local::StateOf(seen)).at("evidence").at("end"), "cancelled");
  seen.started = local::Started{12, 34, "0"};
  seen.alive = true;
  EXPECT_EQ(ToJson(local::StateOf(seen)).at("state"), "running");
  seen.alive = false;
  seen.exit = local::Exit{0, 0};  // it had ended before the signal came
  EXPECT_FALSE(ToJson(local::StateOf(seen)).at("evidence").contains("end"));
}

TEST(LocalRender, AShellReadsEveryWordAsItWas) {
  const std::string nasty = "a 'b' \"c\" $HOME `id` \\ \n * ; é";
  const std::string script = local::RenderScript({{{"exec", {"/usr/bin/printf", "%s|", nasty, "", "plain"}}}});
  const TempDir dir;
  std::ofstream(dir.path() / "run.sh") << script;
  EXPECT_EQ(ridgeline::Run({"/bin/sh", dir.path() / "run.sh"}).stdout_text, nasty + "||plain|");
}

}  // namespace
}  // namespace ridgeline
