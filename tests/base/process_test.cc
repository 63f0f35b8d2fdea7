#include "base/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "tests/base/temp_dir.h"

namespace ridgeline {
namespace {

using testing::HasSubstr;
using testing::Not;

// While it lives, orphans below us become our children, so that a test can wait for them.
class Subreaper {
 public:
  Subreaper() { EXPECT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;
  ~Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
};

constexpr int64_t kSecondNs = 1'000'000'000;

Child Shell(const std::string& script, const SpawnOptions& options = {}) {
  return Child::Spawn({"sh", "-c", script}, options);
}

// The output of `script` under `options`.
std::string Printed(const std::string& script, SpawnOptions options = {}) {
  const TempDir dir;
  options.stdout_file = dir / "out";
  EXPECT_TRUE(Shell(script, options).Wait().ok());
  return ReadFile(dir / "out");
}

TEST(Process, ReportsHowItEnded) {
  EXPECT_TRUE(Shell("exit 0").Wait().ok());
  const ExitStatus failed = Shell("exit 17").Wait();
  EXPECT_EQ(failed.exit_code, 17);
  EXPECT_EQ(failed.signal, 0);
  EXPECT_FALSE(failed.ok());
  const ExitStatus killed = Shell("kill -9 $$").Wait();
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_FALSE(killed.ok());
}

TEST(Process, ReportsPeakMemory) { EXPECT_GT(Shell("exit 0").Wait().rss_peak_bytes, 100'000); }

TEST(Process, EndedOnceItStaysEnded) {
  Child child = Shell("exit 3");
  EXPECT_EQ(child.Wait().exit_code, 3);
  EXPECT_EQ(child.Wait().exit_code, 3);
  ASSERT_TRUE(child.Poll().has_value());
  EXPECT_EQ(child.Poll()->exit_code, 3);
  EXPECT_EQ(child.WaitFor(0)->exit_code, 3);
  child.Signal(SIGKILL);  // its number may belong to another process by now, so nothing is sent
}

TEST(Process, PollSeesARunningProcess) {
  Child child = Shell("exec sleep 600");
  EXPECT_FALSE(child.Poll().has_value());
  EXPECT_FALSE(child.WaitFor(1'000'000).has_value());
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait().signal, SIGTERM);
}

TEST(Process, WaitForWakesWhenItEnds) {
  Child child = Shell("exit 5");
  const auto ended = child.WaitFor(600 * kSecondNs);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->exit_code, 5);
}

TEST(Process, AProgramThatIsNotThereIsAnErrorWithAHint) {
  try {
    Child::Spawn({"ridgeline-no-such-program", "--flag"});
    FAIL() << "it started";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
    EXPECT_THAT(error.message(), HasSubstr("ridgeline-no-such-program"));
    EXPECT_THAT(error.message(), HasSubstr("No such file"));
    EXPECT_THAT(error.hint(), HasSubstr("PATH"));
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process was left behind";
}

TEST(Process, AnExecThatFailsIsAnError) {
  const TempDir dir;
  WriteFileAtomic(dir / "data", "not a program");  // mode 0644
  EXPECT_THROW(Child::Spawn({(dir / "data").string()}), Error);
  EXPECT_THROW(Child::Spawn({dir.path().string()}), Error);
  EXPECT_THROW(Child::Spawn({}), Error);
}

TEST(Process, AFolderOrAFileThatCannotBeUsedIsAnErrorNotACrash) {
  const TempDir dir;
  SpawnOptions no_dir;
  no_dir.work_dir = dir / "missing";
  EXPECT_THROW(Shell("exit 0", no_dir), Error);
  SpawnOptions no_file;
  no_file.stdout_file = dir / "missing/out";
  EXPECT_THROW(Shell("exit 0", no_file), Error);
  SpawnOptions no_cpu;
  no_cpu.cpus = {1000};
  EXPECT_THROW(Shell("exit 0", no_cpu), Error);
}

// No shell reads the arguments on the way.
TEST(Process, ArgumentsArriveAsTheyAre) {
  const std::vector<std::string> odd = {"",    "a b", "$(touch /tmp/x)", "`id`",   "'\"", "*",
                                        ";&|", "\n",  "\xff\xfe",        "--flag", "\\"};
  std::vector<std::string> argv = {"printf", "%s\\0"};
  argv.insert(argv.end(), odd.begin(), odd.end());
  std::string expected;
  for (const std::string& argument : odd) expected += argument + '\0';
  EXPECT_EQ(ridgeline::Run(argv).stdout_text, expected);
}

TEST(Process, EnvironmentIsAddedAndReplaced) {
  ::setenv("RIDGELINE_TEST_KEPT", "ours", 1);
  ::setenv("RIDGELINE_TEST_REPLACED", "ours", 1);
  SpawnOptions options;
  options.environment = {{"RIDGELINE_TEST_REPLACED", "theirs"}, {"RIDGELINE_TEST_ADDED", "a=b c"}};
  EXPECT_EQ(Printed("echo \"$RIDGELINE_TEST_KEPT,$RIDGELINE_TEST_REPLACED,$RIDGELINE_TEST_ADDED\"", options),
            "ours,theirs,a=b c\n");
  EXPECT_EQ(Printed("env | grep -c ^RIDGELINE_TEST_REPLACED=", options), "1\n");
  EXPECT_STREQ(::getenv("RIDGELINE_TEST_REPLACED"), "ours");
}

TEST(Process, OutputIsAppendedAndMayShareAFile) {
  const TempDir dir;
  SpawnOptions options;
  options.stdout_file = dir / "log";
  options.stderr_file = dir / "log";
  Shell("echo one; echo two >&2", options).Wait();
  Shell("echo three", options).Wait();
  EXPECT_EQ(ReadFile(dir / "log"), "one\ntwo\nthree\n");
}

TEST(Process, WorksInItsFolder) {
  const TempDir dir;
  SpawnOptions options;
  options.work_dir = dir.path();
  EXPECT_EQ(Printed("pwd -P", options), std::filesystem::canonical(dir.path()).string() + "\n");
}

TEST(Process, IsPinned) {
  cpu_set_t ours;
  ASSERT_EQ(::sched_getaffinity(0, sizeof ours, &ours), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &ours)) last = cpu;
  }
  SpawnOptions options;
  options.cpus = {last};
  EXPECT_EQ(Printed("grep Cpus_allowed_list /proc/self/status | cut -f2", options), std::to_string(last) + "\n");
}

TEST(Process, NewSessionAndGroup) {
  // Fields 5 and 6 of /proc/PID/stat: process group and session.
  const auto ids = [](const SpawnOptions& options) {
    return Printed("echo $$; cut -d' ' -f5,6 /proc/$$/stat", options);
  };
  SpawnOptions session;
  session.new_session = true;
  std::string text = ids(session);
  std::string pid = text.substr(0, text.find('\n'));
  EXPECT_EQ(text, pid + "\n" + pid + " " + pid + "\n");

  SpawnOptions group;
  group.new_process_group = true;
  text = ids(group);
  pid = text.substr(0, text.find('\n'));
  EXPECT_EQ(text, pid + "\n" + pid + " " + std::to_string(::getsid(0)) + "\n");
}

TEST(Process, SignalGroupReachesGrandchildren) {
  const TempDir dir;
  SpawnOptions options;
  options.new_process_group = true;
  options.stdout_file = dir / "out";
  Child child = Shell("sleep 600 & echo $!; wait", options);
  std::string grandchild;
  while (!grandchild.ends_with('\n')) {
    SystemClock().SleepNs(1'000'000);
    grandchild = ReadTail(dir / "out", 100);
  }
  const Subreaper subreaper;
  child.SignalGroup(SIGKILL);
  EXPECT_EQ(child.Wait().signal, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(std::stoi(grandchild), &status, 0), std::stoi(grandchild));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(Process, DiesWithItsParent) {
  const Subreaper subreaper;
  int report[2];
  ASSERT_EQ(::pipe(report), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    SpawnOptions options;
    options.die_with_parent = true;
    const pid_t child = Child::Spawn({"sleep", "600"}, options).pid();
    if (::write(report[1], &child, sizeof child) != sizeof child) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  pid_t child = 0;
  ASSERT_EQ(::read(report[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), -1);  // not ours yet
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  ::close(report[0]);
  ::close(report[1]);
}

TEST(Process, AChildHasOnlyItsOwnDescriptors) {
  const TempDir dir;
  const auto lock = FileLock::Try(dir / "lock");
  const std::string links = ridgeline::Run({"ls", "-l", "/proc/self/fd"}).stdout_text;
  EXPECT_THAT(links, HasSubstr("1 -> /memfd:captured"));
  EXPECT_THAT(links, HasSubstr("2 -> /memfd:captured"));
  size_t captured = 0;
  for (size_t at = links.find("memfd"); at != std::string::npos; at = links.find("memfd", at + 1)) ++captured;
  EXPECT_EQ(captured, 2U) << links;
  EXPECT_THAT(links, Not(HasSubstr((dir / "lock").string())));
}

TEST(Process, InheritsTheDescriptorsItIsGiven) {
  const TempDir dir;
  const auto lock = FileLock::Try(dir / "lock");
  SpawnOptions options;
  options.inherit_fds = {lock->fd()};
  EXPECT_EQ(Printed("readlink /proc/$$/fd/" + std::to_string(lock->fd()), options),
            std::filesystem::canonical(dir / "lock").string() + "\n");
}

TEST(Process, NoDescriptorIsLeftOpenHere) {
  const auto open_fds = [] {
    const std::filesystem::directory_iterator fds("/proc/self/fd");
    return std::distance(begin(fds), end(fds));
  };
  const auto before = open_fds();
  for (int i = 0; i < 10; ++i) {
    ridgeline::Run({"true"});
    Shell("exit 0").WaitFor(600 * kSecondNs);
    EXPECT_THROW(Child::Spawn({"ridgeline-no-such-program"}), Error);
    EXPECT_THROW(ridgeline::Run({"ridgeline-no-such-program"}), Error);
  }
  EXPECT_EQ(open_fds(), before);
}

TEST(Process, AChildStartsWithoutOurBlockedSignals) {
  sigset_t set;
  sigset_t before;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  ASSERT_EQ(::sigprocmask(SIG_BLOCK, &set, &before), 0);
  ::signal(SIGPIPE, SIG_IGN);
  Child child = Shell("exec sleep 600");
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait().signal, SIGTERM);
  EXPECT_EQ(Shell("kill -PIPE $$").Wait().signal, SIGPIPE);
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

TEST(Run, CapturesBothStreamsApart) {
  const Captured captured = ridgeline::Run({"sh", "-c", "echo out; echo err >&2; exit 4"});
  EXPECT_EQ(captured.stdout_text, "out\n");
  EXPECT_EQ(captured.stderr_text, "err\n");
  EXPECT_EQ(captured.status.exit_code, 4);
}

// More than any pipe holds, on both streams at once.
TEST(Run, NeverBlocksOnMuchOutput) {
  const Captured captured = ridgeline::Run({"sh", "-c", "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2"});
  EXPECT_EQ(captured.stdout_text.size(), 3'000'000U);
  EXPECT_EQ(captured.stderr_text.size(), 2'000'000U);
}

TEST(Run, KillsWhatRunsPastItsTimeWithAllItStarted) {
  const Subreaper subreaper;
  try {
    ridgeline::Run({"sh", "-c", "sleep 600; true"}, kSecondNs / 5);
    FAIL() << "it ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
    EXPECT_THAT(error.message(), HasSubstr("did not end within"));
  }
  // An orphan would be ours now: the sleep is one, unless the dying shell reaped it. This blocks while any child lives.
  int status = 0;
  while (::waitpid(-1, &status, 0) > 0) EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Run, ALimitThatIsNotReachedChangesNothing) {
  EXPECT_EQ(ridgeline::Run({"echo", "done"}, 600 * kSecondNs).stdout_text, "done\n");
}

TEST(Run, AProgramThatIsNotThereIsAnError) { EXPECT_THROW(ridgeline::Run({"ridgeline-no-such-program"}), Error); }

TEST(Describe, IsForPeople) {
  EXPECT_EQ(Describe({3, 0, 0}), "exit code 3");
  EXPECT_EQ(Describe({0, SIGKILL, 0}), "signal 9 (Killed)");
}

}  // namespace
}  // namespace ridgeline
