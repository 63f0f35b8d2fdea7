// `ridgeline exec` in the test's own memory cgroup, whose limit its trainers really reach. Skipped if this process may
// not make one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "base/cgroup.h"
#include "base/process.h"
#include "tests/fakes/test_job.h"

namespace ridgeline::node {
namespace {

namespace fs = std::filesystem;
using testing::Eventually;
using testing::FakeProgram;
using ::testing::HasSubstr;
using testing::ProcessesWith;
using testing::ResultOf;

constexpr const char* kLimit = "400000000";

// Beside all others, with the limit; nothing if none can be made.
std::optional<fs::path> MakeCgroup() {
  const CgroupFolders folders = CgroupsOf("memory");
  for (const auto& [above, limit] : {std::pair(folders.v1, "memory.limit_in_bytes"), {folders.v2, "memory.max"}}) {
    if (above.empty()) continue;
    const fs::path folder = above.back() / ("ridgeline-test-" + std::to_string(::getpid()));
    std::error_code ec;
    if (!fs::create_directory(folder, ec)) continue;
    if (fs::exists(folder / limit, ec) && (std::ofstream(folder / limit) << kLimit).flush()) return folder;
    fs::remove(folder, ec);
  }
  return std::nullopt;
}

class ExecMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    cgroup_ = MakeCgroup();
    if (!cgroup_) GTEST_SKIP() << "no memory cgroup can be made here";
  }
  void TearDown() override {
    if (!cgroup_) return;
    EXPECT_TRUE(Eventually([&] { return ::rmdir(cgroup_->c_str()) == 0; }));
  }
  RunResult Run(const std::string& mode, int64_t ranks = 1) {
    Job job = testing::TestJob(dir_.path() / "rl-test", {mode});
    job.points[0].spec.ranks = ranks;
    job.points[0].spec.communicator.clear();
    Canonicalize(job.points[0].spec);
    job.points[0].id = PointId(job.points[0].spec);
    testing::WriteJob(job);
    SpawnOptions options;
    options.stdout_file = options.stderr_file = dir_ / "exec.log";
    options.die_with_parent = true;
    Child exec = Child::Spawn({"sh", "-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"", *cgroup_,
                               FakeProgram("mini_ridgeline"), "exec", JobFile(job), "50"},
                              options);
    EXPECT_EQ(exec.Wait().exit_code, 0) << ReadTail(dir_ / "exec.log", 4096);
    return ResultOf(job);
  }

  TempDir dir_;
  std::optional<fs::path> cgroup_;
};

TEST_F(ExecMemory, ATrainerThatTheKernelKilledRanOutOfMemory) {
  const RunResult result = Run("eat");
  EXPECT_EQ(result.status, RunStatus::kOomHost) << result.message;
  EXPECT_EQ(result.evidence.at("signal"), "9");
  EXPECT_EQ(result.evidence.at("oom_kill"), "1");
}

TEST_F(ExecMemory, SoDidOneWhoseWorkerWasKilled) {
  for (const char* mode : {"child-eats=1", "child-eats=137"}) {
    const RunResult result = Run(mode);
    EXPECT_EQ(result.status, RunStatus::kOomHost) << mode << ": " << result.message;
    EXPECT_EQ("child-eats=" + result.evidence.at("exit_code"), mode);
    fs::remove_all(dir_ / "rl-test");
  }
}

TEST_F(ExecMemory, TheRankThatWasKilledIsNamed) {
  const RunResult result = Run("rank-eats=2", 3);
  EXPECT_EQ(result.status, RunStatus::kOomHost) << result.message;
  EXPECT_THAT(result.message, HasSubstr("rank 2 ended with signal 9"));
  EXPECT_EQ(result.evidence.at("rank"), "2");
}

TEST_F(ExecMemory, ACrashWithinTheLimitIsACrash) { EXPECT_EQ(Run("exit=1").status, RunStatus::kCrashed); }

}  // namespace
}  // namespace ridgeline::node
