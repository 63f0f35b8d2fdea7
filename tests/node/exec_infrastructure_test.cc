// `ridgeline exec` if something that a trainer needs is missing, full or wrong: none of that may become its result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "tests/node/exec_fixture.h"

namespace ridgeline::node {
namespace {

namespace fs = std::filesystem;
using testing::FakeProgram;
using testing::FindResult;
using ::testing::HasSubstr;
using testing::ResultOf;
using testing::WriteJob;

class ExecInfrastructure : public Exec {
 protected:
  static void ExpectInfrastructure(const RunResult& result, InfrastructureReason reason, const std::string& words) {
    EXPECT_EQ(result.status, RunStatus::kInfrastructure) << result.message;
    EXPECT_EQ(result.reason, reason) << result.message;
    EXPECT_THAT(result.message, HasSubstr(words));
    EXPECT_FALSE(result.hint.empty());
    EXPECT_FALSE(result.evidence.at("node").empty());
  }

  // Runs the job in a folder on a separate disk, mounted with `options`. `before`: shell commands that run there before
  // exec. Returns exec's exit code, and the job as it is read back. Nothing if this process may not mount.
  struct OnDisk {
    int exit_code = 0;
    Job job;
  };
  std::optional<OnDisk> RunOnDisk(Job job, const std::string& options, const std::string& before = "true") {
    if (!MayMount()) return std::nullopt;
    const fs::path disk = dir_ / "disk";
    fs::create_directory(disk);
    job.job_dir = disk / "rl-test";
    WriteFile(dir_ / "job.json", DumpJson(EncodeJob(job)));
    OnDisk ran{0, job};
    ran.job.job_dir = dir_ / "kept";
    MakeDirs(ran.job.job_dir);
    SpawnOptions spawn;
    spawn.stdout_file = spawn.stderr_file = dir_ / "exec.log";
    spawn.die_with_parent = true;
    spawn.environment = {{"DISK", disk}, {"KEPT", ran.job.job_dir}, {"JOB", dir_ / "job.json"}, {"OPTIONS", options}};
    const std::string script =
        "mount -t tmpfs -o \"$OPTIONS\" none \"$DISK\" && mkdir \"$DISK/rl-test\" && "
        "cp \"$JOB\" \"$DISK/rl-test/\" && cd / && " +
        before +
        " && { \"$0\" exec "
        "\"$DISK/rl-test/job.json\"; code=$?; cp \"$DISK/rl-test/results.log\" \"$KEPT\"; "
        "exit $code; }";
    Child child = Child::Spawn(
        {"unshare", ::geteuid() == 0 ? "-m" : "-rm", "sh", "-c", script, FakeProgram("mini_ridgeline")}, spawn);
    ran.exit_code = child.Wait().exit_code;
    return ran;
  }
  static bool MayMount() {
    static const bool may =
        ridgeline::Run({"unshare", ::geteuid() == 0 ? "-m" : "-rm", "mount", "-t", "tmpfs", "none", "/mnt"})
            .status.ok();
    return may;
  }
};

TEST_F(Exec, AShellPassesTheSpecOn) {
  Job job = MakeJob({});
  job.trainer = {"bash", "-ec", "cd . && exec " + testing::FakeProgram("fake_trainer").string() + " ok \"$@\""};
  EXPECT_EQ(Run(job), 0) << Log();
  EXPECT_EQ(ResultOf(job).status, RunStatus::kOk) << ResultOf(job).message;
}

TEST_F(ExecInfrastructure, ANodeWithoutTheTrainerFailsEveryPointAndSaysWhereItIs) {
  Job job = MakeJob({"ok"}, 2);
  job.trainer = {"/nonexistent/trainer"};
  EXPECT_EQ(Run(job, 10'000, {{"SLURMD_NODENAME", "n3"}}), kExecCannotStart);
  EXPECT_THAT(Log(), HasSubstr("unfit: there is no program '/nonexistent/trainer'"));
  for (const size_t point : {0, 1}) {
    ExpectInfrastructure(ResultOf(job, point), InfrastructureReason::kStart, "/nonexistent/trainer");
    EXPECT_EQ(ResultOf(job, point).evidence.at("node"), "n3");
    EXPECT_FALSE(IsThere(DirOf(job, point)));
  }
  EXPECT_EQ(Run(job, 10'000, {{"SLURMD_NODENAME", "n3"}, {kNodeVariable, "worker-3"}}), kExecCannotStart);
  EXPECT_EQ(ResultOf(job, 0).evidence.at("node"), "worker-3");
  EXPECT_EQ(Run(job), kExecCannotStart);
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  EXPECT_EQ(ResultOf(job, 0).evidence.at("node"), host.data());
  // After the repair it runs them: nothing of the failure remains.
  job.trainer = {FakeProgram("fake_trainer"), "ok"};
  EXPECT_EQ(Run(job), kExecDone);
  EXPECT_EQ(ResultOf(job, 1).status, RunStatus::kOk);
}

TEST_F(ExecInfrastructure, ATrainerThatIsNoProgramOfThisMachineIsNoCrash) {
  const fs::path program = dir_ / "trainer";
  std::ofstream(program) << "#!/nonexistent/interpreter\n";
  ::chmod(program.c_str(), 0755);
  Job job = MakeJob({"ok"});
  job.trainer = {program};
  EXPECT_EQ(Run(job), kExecDone) << "another job's point may have one that starts";
  ExpectInfrastructure(ResultOf(job), InfrastructureReason::kStart, "cannot start " + program.string());
}

TEST_F(ExecInfrastructure, PointsThatHaveAResultKeepIt) {
  Job job = MakeJob({"ok"}, 2);
  Job first = job;
  first.points.pop_back();
  EXPECT_EQ(Run(first), kExecDone);
  job.trainer = {"/nonexistent/trainer"};
  EXPECT_EQ(Run(job), kExecCannotStart);
  EXPECT_EQ(ResultOf(job, 0).status, RunStatus::kOk);
  ExpectInfrastructure(ResultOf(job, 1), InfrastructureReason::kStart, "/nonexistent/trainer");
  EXPECT_EQ(Run(first), kExecDone) << "nothing is left to run, so nothing is asked of the node";
}

// This holds for any trainer that reports its GPU's state.
TEST_F(ExecInfrastructure, AThrottledGpuIsTheNodesWhereTheSweepRefusesThat) {
  const std::string text =
      R"(writes={"version": 1, "status": "ok", "step_ns": {"median": 5}, "gpu": {"throttled_share": 0.5}})";
  Job job = MakeJob({text});
  job.points[0].spec.refuse_throttled = true;
  EXPECT_EQ(Run(job), 0) << Log();
  const RunResult result = ResultOf(job);
  ExpectInfrastructure(result, InfrastructureReason::kNode, "its GPU was throttled in 50 % of the measured steps");
  EXPECT_EQ(result.evidence.at("gpu_throttled_share"), "0.5");
  EXPECT_EQ(RunOne(text).status, RunStatus::kOk);
}

TEST_F(ExecInfrastructure, AClockThatIsWrongIsTheNodes) {
  const Job job = MakeJob({"ok"});
  WriteJob(job);
  fs::last_write_time(JobFile(job), fs::file_time_type::clock::now() + std::chrono::hours(30));
  EXPECT_EQ(Start(job).Wait().exit_code, kExecNodeUnfit);
  ExpectInfrastructure(ResultOf(job), InfrastructureReason::kNode, "this node's clock says");
}

TEST_F(ExecInfrastructure, AFolderThatCannotBeWrittenIsSaidByTheExitCode) {
  const auto ran = RunOnDisk(MakeJob({"ok"}), "size=200m", "mount -o remount,ro \"$DISK\"");
  if (!ran) GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_EQ(ran->exit_code, kExecNoStorage);
  EXPECT_THAT(Log(), HasSubstr("Read-only file system"));
}

TEST_F(ExecInfrastructure, ADiskWithoutRoomIsSaidOfEveryPoint) {
  const auto ran = RunOnDisk(MakeJob({"ok"}, 2), "size=20m");
  if (!ran) GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_EQ(ran->exit_code, kExecNoStorage);
  for (const size_t point : {0, 1}) {
    ExpectInfrastructure(ResultOf(ran->job, point), InfrastructureReason::kStorage, "has 2");
  }
}

TEST_F(ExecInfrastructure, ADiskThatATrainerFillsIsNoCrash) {
  const auto ran = RunOnDisk(MakeJob({"fill-and-free=1", "ok"}, 2), "size=100m");
  if (!ran) GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_EQ(ran->exit_code, kExecDone) << Log();
  const RunResult result = ResultOf(ran->job, 0);
  ExpectInfrastructure(result, InfrastructureReason::kStorage, "the trainer ended with exit code 1");
  EXPECT_THAT(result.message, HasSubstr("free"));
  EXPECT_EQ(ResultOf(ran->job, 1).status, RunStatus::kOk);
}

TEST_F(ExecInfrastructure, ADiskThatStaysFullIsSaidByTheExitCode) {
  const auto ran = RunOnDisk(MakeJob({"fill=1", "ok"}, 2), "size=100m");
  if (!ran) GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_EQ(ran->exit_code, kExecNoStorage);
  EXPECT_THAT(Log(), HasSubstr("No space left on device"));
  EXPECT_FALSE(FindResult(ran->job, 0));
  EXPECT_FALSE(FindResult(ran->job, 1));
}

TEST_F(ExecInfrastructure, APointsFolderThatIsRemovedUnderItIsNoCrash) {
  const Job job = MakeJob({"remove-point=1", "ok"}, 2);
  EXPECT_EQ(Run(job), kExecDone) << Log();
  ExpectInfrastructure(ResultOf(job, 0), InfrastructureReason::kStorage, "No such file or directory");
  EXPECT_EQ(ResultOf(job, 1).status, RunStatus::kOk);
}

// Bytes written into a file that nobody can find any more are lost.
TEST_F(ExecInfrastructure, AJobsFolderThatIsRemovedUnderItIsSaidByTheExitCode) {
  for (const char* mode : {"remove-job=1", "remove-job=0"}) {
    const Job job = MakeJob({mode, "ok"}, 2);
    EXPECT_EQ(Run(job), kExecNoStorage) << mode;
    EXPECT_THAT(Log(), HasSubstr("results.log was removed"));
  }
}

TEST_F(ExecInfrastructure, ATrainerThatSaysThatItsStorageFailedIsBelieved) {
  const Job job = MakeJob({"exit=14", "status=storage"}, 2);
  EXPECT_EQ(Run(job), kExecDone) << Log();
  ExpectInfrastructure(ResultOf(job, 0), InfrastructureReason::kStorage, "exit code 14");
  ExpectInfrastructure(ResultOf(job, 1), InfrastructureReason::kStorage, "because");
}

TEST_F(ExecInfrastructure, ACrashOnASoundNodeStaysACrash) { EXPECT_EQ(RunOne("exit=1").status, RunStatus::kCrashed); }

TEST(ExecExitCodes, SayWhatOfTheInfrastructureItWas) {
  const std::pair<int, std::string_view> reasons[] = {{kExecDone, ""},
                                                      {1, ""},
                                                      {kExecRefused, "start"},
                                                      {kExecNoStorage, "storage"},
                                                      {kExecCannotStart, "start"},
                                                      {kExecNodeUnfit, "node"},
                                                      {126, "start"},
                                                      {127, "start"},
                                                      {137, ""},
                                                      {kExecInterrupted, ""}};
  for (const auto& [code, reason] : reasons) EXPECT_EQ(ReasonOfExecExit(code), reason) << code;
}

}  // namespace
}  // namespace ridgeline::node
