// The checks of a node before a job's first point, each fault by itself.
#include "node/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <fstream>
#include <vector>

#include "base/files.h"
#include "base/version.h"
#include "run/presets.h"
#include "tests/base/no_files_left.h"
#include "tests/fakes/test_job.h"

namespace ridgeline::node {
namespace {

namespace fs = std::filesystem;
using testing::FakeProgram;
using ::testing::HasSubstr;
using testing::TestJob;
using testing::WriteJob;

class Now final : public Clock {
 public:
  int64_t MonotonicNs() const override { return 0; }
  int64_t UnixNs() const override { return unix_s * 1'000'000'000; }
  void SleepNs(int64_t /*duration_ns*/) override {}
  int64_t unix_s = ::time(nullptr);
};

class PreflightTest : public ::testing::Test {
 protected:
  PreflightTest() { WriteJob(job_); }

  std::optional<Unfit> Check() {
    std::vector<RunSpec> runs;
    for (const JobPoint& point : job_.points) runs.push_back(point.spec);
    return Preflight(job_, JobFile(job_), runs, 0, clock_, directory_, root_.path());
  }
  void ExpectUnfit(InfrastructureReason reason, const std::string& words) {
    const std::optional<Unfit> unfit = Check();
    ASSERT_TRUE(unfit) << words;
    EXPECT_EQ(unfit->reason, reason) << unfit->message;
    EXPECT_THAT(unfit->message, HasSubstr(words));
    EXPECT_FALSE(unfit->hint.empty());
  }
  // The test's own program.
  fs::path Program(const std::string& name, const std::string& script) {
    const fs::path file = dir_ / name;
    std::ofstream(file) << "#!/bin/sh\n" << script;
    ::chmod(file.c_str(), 0755);
    return file;
  }

  TempDir dir_;
  TempDir root_;
  fs::path directory_;
  Now clock_;
  Job job_ = TestJob(dir_ / "rl-test", {"ok"});
};

TEST_F(PreflightTest, ANodeThatHasAllIsFitAndKeepsNothing) {
  EXPECT_FALSE(Check());
  EXPECT_FALSE(fs::exists(job_.job_dir / ExecCheckName(0)));
}

TEST_F(PreflightTest, AFolderThatIsGoneIsStorage) {
  fs::remove_all(job_.job_dir);
  ExpectUnfit(InfrastructureReason::kStorage, "cannot write in " + job_.job_dir.string());
}

TEST_F(PreflightTest, TooManyOpenFilesAreALimitAndNoFaultOfTheDisk) {
  std::optional<Unfit> unfit;
  {
    const NoFilesLeft none;
    unfit = CheckFolder(job_.job_dir, ExecCheckName(0), 0);
  }
  ASSERT_TRUE(unfit);
  EXPECT_EQ(unfit->reason, InfrastructureReason::kLimit) << unfit->message;
  EXPECT_THAT(unfit->hint, HasSubstr("ulimit -n"));
}

TEST_F(PreflightTest, OverwritesNoFileOfOthers) {
  std::ofstream(dir_ / "elsewhere") << "precious";
  fs::create_symlink(dir_ / "elsewhere", job_.job_dir / ExecCheckName(0));
  ExpectUnfit(InfrastructureReason::kStorage, "cannot write in");
  EXPECT_EQ(ReadFile(dir_ / "elsewhere"), "precious");
}

TEST_F(PreflightTest, RoomForTheCheckpointFilesIsAskedForWhereTheyAreKnown) {
  RunSpec& spec = job_.points[0].spec;
  std::vector<Problem> problems;
  spec = BuildSpec({{"model", "llama-64b"}, {"steps", 1000}}, problems);
  job_.trainer = {Program("ridgeline-train", "exit 0\n")};
  EXPECT_FALSE(Check()) << "it saves nothing";
  spec.checkpoint_dir = dir_ / "is/made/later";
  EXPECT_GT(CheckpointBytes(spec), 64 * 12 * 3 * int64_t{900'000'000});
  ExpectUnfit(InfrastructureReason::kStorage, "checkpoint files take up to");
  job_.trainer = {Program("another-trainer", "exit 0\n")};
  EXPECT_FALSE(Check()) << "nobody knows what another trainer saves";
}

TEST_F(PreflightTest, AsManyCheckpointFilesAsAreWrittenTakeRoom) {
  RunSpec spec = testing::TestSpec(1);
  const int64_t one = CountParameters(spec) * 12;
  EXPECT_EQ(CheckpointBytes(spec), 0);
  spec.checkpoint_dir = "x";
  spec.warmup_steps = 0;
  spec.steps = 10;
  spec.checkpoint_every_steps = 100;
  EXPECT_EQ(CheckpointBytes(spec), one) << "the last step is saved";
  spec.checkpoint_every_steps = 5;
  EXPECT_EQ(CheckpointBytes(spec), 2 * one);
  spec.checkpoint_every_steps = 1;
  spec.checkpoint_keep = 2;
  EXPECT_EQ(CheckpointBytes(spec), 3 * one) << "two are kept while the third is written";
}

TEST_F(PreflightTest, AClockBeforeThisProgramIsTheNodes) {
  if (GitCommitUnixS() == 0) GTEST_SKIP() << "built from nothing that has a date";
  clock_.unix_s = 1;
  ExpectUnfit(InfrastructureReason::kNode, "clock says 1970-01-01T00:00:01Z");
}

TEST_F(PreflightTest, AClockBehindTheJobsFileIsTheNodes) {
  clock_.unix_s -= 600;
  EXPECT_FALSE(Check()) << "clocks differ a little";
  clock_.unix_s -= 600;
  ExpectUnfit(InfrastructureReason::kNode, "its job was written at");
}

TEST_F(PreflightTest, ATrainerThatIsNotThereIsNoStart) {
  for (const char* program : {"/nonexistent/trainer", "no-such-trainer", "/tmp"}) {
    job_.trainer = {program};
    ExpectUnfit(InfrastructureReason::kStart, program);
  }
  job_.trainer = {"sh", "-c", "true"};
  EXPECT_FALSE(Check());
  job_.environment["PATH"] = dir_.path();
  ExpectUnfit(InfrastructureReason::kStart, "'sh'");
}

TEST_F(PreflightTest, AnInterpretersScriptMustBeThere) {
  const fs::path script = dir_ / "train.py";
  for (const std::vector<std::string>& trainer :
       {std::vector<std::string>{"sh", script}, {"sh", "-x", script, "--flag"}, {"sh", "train.py"}}) {
    job_.trainer = trainer;
    ExpectUnfit(InfrastructureReason::kStart, "train.py");
  }
  std::ofstream(script) << "x";
  job_.trainer = {"sh", "-x", script};
  EXPECT_FALSE(Check());
  for (const std::vector<std::string>& trainer : {std::vector<std::string>{"sh", "-c", "./train.py"},
                                                  {"sh", "-lc", "source env.sh && exec ./train.py"},
                                                  {"sh", "-W", "ignore", "nowhere.py"},
                                                  {FakeProgram("fake_trainer"), "nowhere.py"}}) {
    job_.trainer = trainer;
    EXPECT_FALSE(Check()) << trainer[1] << ": nobody knows that it is a script";
  }
}

TEST_F(PreflightTest, OursIsStartedOnce) {
  job_.environment["TOLD"] = "by the job";
  job_.trainer = {Program("ridgeline-train", "echo $1 $TOLD >>" + (dir_ / "calls").string())};
  EXPECT_FALSE(Check());
  EXPECT_EQ(ReadFile(dir_ / "calls"), "--version by the job\n");
  job_.trainer = {Program("ridgeline-train", "echo 'libdnnl.so.3: cannot open' >&2; exit 127")};
  ExpectUnfit(InfrastructureReason::kStart, "exit code 127: libdnnl.so.3: cannot open");
  job_.trainer = {Program("their-trainer", "exit 127")};
  EXPECT_FALSE(Check()) << "it need not know our flags";
}

TEST_F(PreflightTest, OurDataMustBeThere) {
  job_.trainer = {Program("ridgeline-train", "exit 0\n")};
  job_.points[0].spec.data = dir_ / "corpus.txt";
  ExpectUnfit(InfrastructureReason::kStorage, "corpus.txt cannot be read on this node: No such file");
  std::ofstream(dir_ / "corpus.txt") << "text";
  EXPECT_FALSE(Check());
}

TEST_F(PreflightTest, TheWeightsThatARunStartsFromMustBeThere) {
  job_.trainer = {Program("ridgeline-train", "exit 0\n")};
  job_.points[0].spec.init_from = dir_ / "weights";
  ExpectUnfit(InfrastructureReason::kStorage, "the folder of weights ");
  MakeDirs(dir_ / "weights");
  EXPECT_FALSE(Check());
}

TEST_F(PreflightTest, GpusThatAreAskedForMustShow) {
  job_.gpus = 8;
  ExpectUnfit(InfrastructureReason::kNode, "asks for 8 GPUs, and this node shows none");
  MakeDirs(root_ / "dev");
  std::ofstream(root_ / "dev/nvidiactl") << "";
  EXPECT_TRUE(Check()) << "the driver's, and no card";
  std::ofstream(root_ / "dev/nvidia0") << "";
  EXPECT_FALSE(Check()) << "in slices, perhaps";
  fs::remove(root_ / "dev/nvidia0");
  MakeDirs(root_ / "dev/dri");
  std::ofstream(root_ / "dev/dri/renderD128") << "";
  EXPECT_FALSE(Check());
}

}  // namespace
}  // namespace ridgeline::node
