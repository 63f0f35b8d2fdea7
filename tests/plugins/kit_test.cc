// What launchers share (plugins/common): keys, answers, evidence, programs. Options and journals have their own tests.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "common/answers.h"
#include "common/evidence.h"
#include "common/keys.h"
#include "common/process.h"
#include "ridgeline/job_dir.h"
#include "tests/base/no_files_left.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::plugin {
namespace {

using ::testing::HasSubstr;

// ---- keys

TEST(Keys, AreNamesOfFilesAndOfObjectsAnywhere) {
  for (const char* key : {"rl-0", "rl-0123456789abcdef0123456789abcdef", "rl-a-b-2"}) EXPECT_TRUE(IsKey(key)) << key;
  for (const char* text : {"", "rl", "a", "../rl-1", "rl-../x", "rl-a/b", "rl-.", "rl-A", "rl-a_b", "rl-a ", "rl-a\n",
                           "rl-", "rl-a-", "rl-é", "rl-$(id)", "rl-a;b"}) {
    EXPECT_FALSE(IsKey(text)) << text;
    EXPECT_THROW(CheckKey(text), Failure) << text;
  }
  EXPECT_TRUE(IsKey("rl-" + std::string(47, 'a')));
  EXPECT_FALSE(IsKey("rl-" + std::string(48, 'a')));
  EXPECT_FALSE(IsKey(std::string("rl-a\0b", 6)));
}

// ---- answers

TEST(Answers, SayWhatIsKnownAndNothingElse) {
  EXPECT_EQ(ToJson(JobState()), Json({{"state", "missing"}}));
  const JobState running{Phase::kRunning, 5, {}, "12_3"};
  EXPECT_EQ(ToJson(running), Json({{"state", "running"}, {"started_unix_s", 5}, {"native_id", "12_3"}}));
  const JobState ended{Phase::kEnded, 0, {{"end", "timeout"}}, ""};
  EXPECT_EQ(ToJson(ended), Json({{"state", "ended"}, {"evidence", {{"end", "timeout"}}}}));
  EXPECT_EQ(ToJson(Availability{false, "no", "x"}), Json({{"available", false}, {"why", "no"}, {"description", "x"}}));
  EXPECT_EQ(ToJson(Availability{true, "", "x", 7}).at("max_jobs"), 7);
}

TEST(Answers, NameEachKeyInTheOrderAsked) {
  const Json jobs = Json::array({{{"key", "rl-b"}}, {{"key", "rl-a"}}});
  const std::vector<Submission> answers = {{"7", {}}, {"", Failure(Failure::Kind::kNotNow, "later")}};
  const Json list = ToJson(KeysOf(jobs), answers);
  EXPECT_EQ(list.at(0), Json({{"key", "rl-b"}, {"native_id", "7"}}));
  EXPECT_EQ(list.at(1).at("key"), "rl-a");
  EXPECT_EQ(list.at(1).at("error").at("retry"), true);
  EXPECT_FALSE(list.at(1).contains("native_id"));
}

// ---- evidence

TEST(EvidenceOfAnEnd, IsTheSameFromEveryLauncher) {
  Evidence evidence;
  AddExit(3, 0, evidence);
  AddQueueWait(10, 0, evidence);
  AddLogTail("", evidence);
  EXPECT_EQ(evidence, (Evidence{{"exit_code", "3"}}));
  AddEnd("timeout", "it took too long", "", evidence);
  AddQueueWait(10, 25, evidence);
  EXPECT_EQ(evidence.at("end"), "timeout");
  EXPECT_FALSE(evidence.contains("hint"));
  EXPECT_EQ(evidence.at("queue_wait_s"), "15");
  Evidence killed;
  AddExit(0, 9, killed);
  AddQueueWait(25, 10, killed);  // clocks of two machines
  EXPECT_EQ(killed, (Evidence{{"queue_wait_s", "0"}, {"signal", "9"}}));
}

TEST(EvidenceOfAnEnd, KeepsTheEndOfALog) {
  Evidence evidence;
  AddLogTail(std::string(kLogTailBytes, 'a') + "the end", evidence);
  EXPECT_EQ(evidence.at("log_tail").size(), kLogTailBytes);
  EXPECT_TRUE(evidence.at("log_tail").ends_with("athe end"));
}

// ---- programs

TEST(Programs, RefusesProgramsThatCannotBeRunBeforeTheyStart) {
  EXPECT_NO_THROW(CheckProgram({"/bin/sh"}));
  const auto refusal = [](const std::vector<std::string>& argv) {
    try {
      CheckProgram(argv);
    } catch (const Failure& e) {
      return std::string(e.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(refusal({}), HasSubstr("no command"));
  EXPECT_THAT(refusal({"/nonexistent/program"}), HasSubstr("cannot run /nonexistent/program: No such file"));
  EXPECT_THAT(refusal({"/etc/passwd"}), HasSubstr("Permission denied"));
}

// Descriptors whose numbers collide arrive in their places, and no others arrive.
TEST(Programs, FindTheirDescriptorsInPlace) {
  const TempDir dir;
  const auto open = [&](const char* name) {
    return ::open((dir / name).c_str(), O_RDWR | O_CREAT, 0600);  // stays open across exec
  };
  const int out = open("out");
  const int other = open("other");
  const Fd in(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  SpawnOptions spawn;
  spawn.descriptors = {in.get(), out, out, other, in.get()};
  spawn.only_these = true;
  spawn.new_session = true;
  const char* script = "echo word; echo there >&3; for fd in /proc/$$/fd/*; do echo ${fd##*/}; done; ps -o sid= -p $$";
  const pid_t pid = Spawn({"sh", "-c", script}, EnvironmentWithout({}), spawn);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  EXPECT_EQ(ReadFile(dir / "other"), "there\n");
  const std::string said = ReadFile(dir / "out");
  EXPECT_TRUE(said.starts_with("word\n0\n1\n2\n3\n4\n")) << said;
  EXPECT_THAT(said, HasSubstr(std::to_string(pid))) << "leader of its session";
  ::close(out);
  ::close(other);
}

// ---- files

TEST(JobDir, NamesTheFilesOfNodesAndRanks) {
  EXPECT_EQ(LogName(0), "log.txt");
  EXPECT_EQ(LogName(3), "log.3.txt");
  EXPECT_EQ(SpecName(0), "spec.json");
  EXPECT_EQ(SpecName(2), "spec.node2.json");
  EXPECT_EQ(ExecLockName(0), "exec.lock");
  EXPECT_EQ(ExecLockName(1), "exec.node1.lock");
  EXPECT_EQ(ProgressFile("/j", "p"), "/j/points/p/progress");
}

}  // namespace
}  // namespace ridgeline::plugin
