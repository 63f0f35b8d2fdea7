// The programs that the Slurm launcher starts, Slurm's tools and the agent, replaced by a test.
#include "slurm/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "base/files.h"
#include "tests/base/temp_dir.h"
#include "tests/fakes/test_job.h"
#include "tests/plugins/slurm_job.h"

namespace ridgeline::slurm {
namespace {

using plugin::Json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Sets a variable of the environment, and restores it at the end.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class SlurmClient : public ::testing::Test {
 protected:
  std::filesystem::path Program(const std::string& name, const std::string& lines) const {
    const auto file = dir_ / name;
    WriteFileAtomic(file, "#!/bin/sh\n" + lines + "\n");
    std::filesystem::permissions(file, std::filesystem::perms(0755));
    return file;
  }
  static BatchJob Batch(const Options& options = {}) {
    return Bundle(Json::array({Job("rl-a")}), options, {}, "/work", "/logs")[0];
  }
  // The result of a submission by this sbatch.
  Trouble TroubleWith(const std::string& sbatch, int64_t timeout_ms = 10'000) {
    Program("sbatch", sbatch);
    try {
      const int64_t id = MakeToolsClient("", timeout_ms)->Submit(Batch());
      ADD_FAILURE() << "it was job " << id;
    } catch (const SlurmError& e) {
      said_ = e.what();
      return e.trouble();
    }
    return Trouble::kRefused;
  }
  std::vector<std::string> Calls() const {
    std::vector<std::string> calls;
    std::istringstream in(ReadFileIfThere(dir_ / "calls").value_or(""));
    for (std::string line; std::getline(in, line);) calls.push_back(line);
    return calls;
  }

  TempDir dir_;
  Variable path_{"PATH", dir_.path().string() + ":/usr/bin:/bin"};
  std::string said_;
};

TEST_F(SlurmClient, ASubmissionHasItsId) {
  Program("sbatch", "echo 'welcome to alps'; echo '12;alps'");
  EXPECT_EQ(MakeToolsClient()->Submit(Batch()), 12);
}

TEST_F(SlurmClient, OnlyAClearNoIsARefusal) {
  EXPECT_EQ(TroubleWith("echo 'sbatch: error: Batch job submission failed: Invalid qos specification' >&2; exit 1"),
            Trouble::kRefused);
  EXPECT_EQ(TroubleWith("kill -INT $$"), Trouble::kNoAnswer) << "Ctrl-C in its middle";
  EXPECT_THAT(said_, HasSubstr("signal 2"));
  EXPECT_EQ(TroubleWith("exit 130"), Trouble::kNoAnswer) << "the same, through a shell";
  EXPECT_EQ(TroubleWith("echo 'sbatch: error: waiting' >&2; kill -KILL $$"), Trouble::kNoAnswer);
  EXPECT_EQ(TroubleWith("exit 1"), Trouble::kNoAnswer) << "silence";
  EXPECT_EQ(TroubleWith("true"), Trouble::kNoAnswer) << "done, and no id";
  EXPECT_EQ(TroubleWith("echo 'Submitted batch job'"), Trouble::kNoAnswer);
  EXPECT_EQ(TroubleWith("echo 'Socket timed out on send/recv operation' >&2; exit 1"), Trouble::kNoAnswer);
  EXPECT_EQ(TroubleWith("sleep 30", 200), Trouble::kNoAnswer);
  EXPECT_EQ(TroubleWith("echo 'sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying' >&2; "
                        "sleep 30",
                        200),
            Trouble::kNoAnswer)
      << "its last try may have been the one";
  EXPECT_EQ(TroubleWith("echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2; echo 'sbatch: error: Batch job "
                        "submission failed: Job violates accounting/QOS policy' >&2; exit 1"),
            Trouble::kBusy);
  EXPECT_THAT(said_, AllOf(HasSubstr("QOSMaxSubmitJobPerUserLimit; "), Not(HasSubstr("\n"))));
}

TEST_F(SlurmClient, ATestSubmitsNothing) {
  Program("sbatch", "echo \"$@\" >> " + (dir_ / "calls").string() + "; echo 'sbatch: Job 7 to start at …' >&2");
  MakeToolsClient("alps")->Test(Batch());
  EXPECT_THAT(Calls(), ElementsAre("--clusters=alps --test-only"));
  Program("sbatch", "echo 'allocation failure: Invalid partition name specified' >&2; exit 1");
  try {
    MakeToolsClient()->Test(Batch());
    ADD_FAILURE() << "it is refused";
  } catch (const SlurmError& e) {
    EXPECT_EQ(e.trouble(), Trouble::kRefused);
    EXPECT_THAT(e.what(), HasSubstr("Invalid partition name specified"));
  }
}

TEST_F(SlurmClient, ATerminalsCtrlCDoesNotReachATool) {
  Program("sbatch", "ps -o pgid= -p $$ > " + (dir_ / "group").string() + "; echo 12");
  MakeToolsClient()->Submit(Batch());
  EXPECT_NE(std::stoi(ReadFile(dir_ / "group")), ::getpgrp());
  const auto agent = Program("agent", "ps -o pgid= -p $$ > " + (dir_ / "group").string() +
                                          "; while read -r line; do echo '{\"ok\": {\"job_id\": 7}}'; done");
  EXPECT_EQ(MakeAgentClient(agent)->Submit(Batch()), 7);
  EXPECT_NE(std::stoi(ReadFile(dir_ / "group")), ::getpgrp());
}

// Otherwise it would keep trying, and submit what the next driver has submitted meanwhile.
TEST_F(SlurmClient, ASubmissionEndsWithWhoMakesIt) {
  Program("sbatch", "echo $$ > " + (dir_ / "pid").string() + "; exec sleep 60");
  const pid_t driver = ::fork();
  if (driver == 0) {
    try {
      MakeToolsClient()->Submit(Batch());
    } catch (...) {
    }
    ::_exit(0);
  }
  ASSERT_TRUE(testing::Eventually([&] { return ReadFileIfThere(dir_ / "pid").value_or("").ends_with('\n'); }));
  ::kill(driver, SIGKILL);
  ::waitpid(driver, nullptr, 0);
  const pid_t sbatch = std::stoi(ReadFile(dir_ / "pid"));
  const bool gone = testing::Eventually([&] { return ::kill(sbatch, 0) != 0; });
  if (!gone) ::kill(sbatch, SIGKILL);
  EXPECT_TRUE(gone);
}

TEST_F(SlurmClient, EndsTheProcessesOfAToolThatRanTooLong) {
  EXPECT_EQ(TroubleWith("sleep 60 & echo $! > " + (dir_ / "pid").string() + "; wait", 500), Trouble::kNoAnswer);
  const pid_t child = std::stoi(ReadFile(dir_ / "pid"));
  EXPECT_TRUE(testing::Eventually([&] { return ::kill(child, 0) != 0; }));
}

TEST_F(SlurmClient, PassesTheVariablesOfClusterAndUser) {
  const Variable conf("SLURM_CONF", "/etc/here.conf");
  const Variable server("SLURM_CONF_SERVER", "ctl:6817");
  const Variable token("SLURM_JWT", "a.b.c");
  const Variable clusters("SLURM_CLUSTERS", "alps");
  const Variable job("SLURM_JOB_ID", "99");
  const Variable partition("SBATCH_PARTITION", "debug");
  const Variable cores("SRUN_CPUS_PER_TASK", "1");
  const Variable format("SQUEUE_FORMAT", "%i");
  Program("sbatch", "env > " + (dir_ / "env").string() + "; echo 12");
  MakeToolsClient()->Submit(Batch());
  EXPECT_THAT(ReadFile(dir_ / "env"),
              AllOf(HasSubstr("SLURM_CONF=/etc/here.conf\n"), HasSubstr("SLURM_CONF_SERVER=ctl:6817\n"),
                    HasSubstr("SLURM_JWT=a.b.c\n"), HasSubstr("SLURM_CLUSTERS=alps\n"), Not(HasSubstr("SLURM_JOB_ID")),
                    Not(HasSubstr("SBATCH_PARTITION")), Not(HasSubstr("SRUN_")), Not(HasSubstr("SQUEUE_FORMAT"))));
}

TEST_F(SlurmClient, AnotherClusterIsNamedInEveryCall) {
  for (const char* tool : {"sbatch", "squeue", "sacct", "scancel", "scontrol"}) {
    Program(tool, "echo \"$(basename \"$0\") $*\" >> " + (dir_ / "calls").string() + "; echo 12");
  }
  const auto client = MakeToolsClient("alps");
  client->GetFacts();
  EXPECT_EQ(client->Submit(Batch()), 12);
  client->Jobs();
  client->Accounted({"demo.1.rl-a"}, 0);
  client->AccountedById({12}, 0);
  client->Cancel({"12_[0-3]"});
  EXPECT_EQ(Calls().size(), 6U);
  EXPECT_THAT(Calls(), Each(HasSubstr(" --clusters=alps ")));
  EXPECT_THAT(client->Description(), HasSubstr("alps"));
}

TEST_F(SlurmClient, WithoutAToolThereIsNoSlurm) {
  const Variable path("PATH", dir_.path().string());
  try {
    MakeToolsClient()->GetFacts();
    FAIL() << "it answered";
  } catch (const SlurmError& e) {
    EXPECT_THAT(e.what(), HasSubstr("cannot start scontrol: No such file or directory"));
  }
  EXPECT_THROW(MakeAgentClient(dir_ / "agent"), SlurmError);
}

// ---- the agent

TEST_F(SlurmClient, TheAgentsErrorsComeWithWhatLibslurmSaidOfThem) {
  const auto agent = Program(
      "agent",
      "read -r line; echo 'slurm: error: QOSMaxWallDurationPerJobLimit' >&2; echo '{\"error\": {\"code\": 2050, "
      "\"text\": "
      "\"Job violates accounting/QOS policy\"}}'\nread -r line; echo '{\"error\": {\"code\": 2000, \"text\": \"Invalid "
      "partition name\"}}'");
  const auto client = MakeAgentClient(agent);
  for (const char* words :
       {"QOSMaxWallDurationPerJobLimit; Job violates accounting/QOS policy", "Invalid partition name"}) {
    try {
      client->Submit(Batch());
      FAIL() << "it was taken";
    } catch (const SlurmError& e) {
      EXPECT_STREQ(e.what(), words);
      EXPECT_EQ(e.trouble(), Trouble::kRefused);
    }
  }
}

// In the form of 22.05 when a site's job_submit.lua gives a message (log_user) and returns slurm.ERROR.
TEST_F(SlurmClient, ASitesOwnRefusalIsOneAndItsSentenceComesFirst) {
  EXPECT_EQ(TroubleWith("printf 'sbatch: error: Name an account, and try again\\nsbatch: error: Batch job submission "
                        "failed: Unspecified error\\n' >&2; exit 1"),
            Trouble::kRefused);
  EXPECT_EQ(said_, "Name an account, and try again");
  const auto agent =
      Program("agent",
              "while read -r line; do printf 'slurm: error: Name an account, and try again\\n' >&2; echo "
              "'{\"error\": {\"code\": -1, \"text\": \"Unspecified error\"}}'; done");
  try {
    MakeAgentClient(agent)->Submit(Batch());
    FAIL() << "it was taken";
  } catch (const SlurmError& e) {
    EXPECT_STREQ(e.what(), "Name an account, and try again");
    EXPECT_EQ(e.trouble(), Trouble::kRefused);
  }
}

TEST_F(SlurmClient, AnAgentThatEndsInASubmissionLeavesItOpen) {
  const auto agent = Program("agent", "read -r line; kill -KILL $$");
  try {
    MakeAgentClient(agent)->Submit(Batch());
    FAIL() << "it was taken";
  } catch (const SlurmError& e) {
    EXPECT_EQ(e.trouble(), Trouble::kNoAnswer);
  }
}

TEST_F(SlurmClient, TheAgentIsAskedForWhatSbatchWouldBe) {
  const auto agent = Program("agent", "while read -r line; do printf '%s\\n' \"$line\" >> " +
                                          (dir_ / "calls").string() + "; echo '{\"ok\": {\"job_id\": 7}}'; done");
  Program("sbatch", "echo 12");
  const auto client = MakeAgentClient(agent);
  Options options;
  options.gpus = "h100:8";
  options.gres = "nvme:1";
  options.dependency = "afterok:5";
  BatchJob batch = Batch(options);
  batch.avoid = {"n1", "n2"};
  EXPECT_EQ(client->Submit(batch), 7);
  const Json asked = Json::parse(Calls().at(0));
  EXPECT_EQ(asked.at("gres"), "gpu:h100:8,nvme:1");
  EXPECT_EQ(asked.at("exclude"), "n1,n2");
  EXPECT_EQ(asked.at("dependency"), "afterok:5");
  EXPECT_EQ(asked.at("name"), "a-sweep.1.rl-a");
  options.gpu_bind = "none";
  EXPECT_EQ(client->Submit(Batch(options)), 12) << "what only sbatch knows is sbatch's";
}

}  // namespace
}  // namespace ridgeline::slurm
