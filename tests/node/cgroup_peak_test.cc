// The peak of a cgroup: from files made for the test, and from a real cgroup if this machine allows one.
#include "node/cgroup_peak.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "base/cgroup.h"
#include "base/files.h"
#include "base/process.h"
#include "tests/base/temp_dir.h"
#include "tests/node/exec_fixture.h"

namespace ridgeline::node {
namespace {
namespace fs = std::filesystem;

class CgroupPeakTest : public ::testing::Test {
 protected:
  CgroupPeakTest() {
    Say("proc/self/cgroup", "4:memory:/container\n0::/job\n");
    Say("sys/fs/cgroup/job/cgroup.procs", std::to_string(::getpid()) + "\n");
    Say("sys/fs/cgroup/memory/container/cgroup.procs", std::to_string(::getpid()) + "\n");
  }
  void Say(const std::string& name, const std::string& text) {
    MakeDirs((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;  // the same file, which stays open in the reader
  }

  TempDir root_;
};

TEST_F(CgroupPeakTest, IsThePeakSinceTheLastReset) {
  Say("sys/fs/cgroup/job/memory.peak", "9000000\n");
  const CgroupPeak peak(root_.path());
  EXPECT_EQ(ReadFile(root_ / "sys/fs/cgroup/job/memory.peak").substr(0, 2), "0\n") << "it was not asked";
  Say("sys/fs/cgroup/job/memory.peak", "5000000\n");
  EXPECT_EQ(peak.Bytes(), 5'000'000);
}

TEST_F(CgroupPeakTest, OnAnOlderKernelThePeakCountsIfItRose) {
  Say("sys/fs/cgroup/job/memory.peak", "9000000\n");
  const CgroupPeak peak(root_.path(), /*resets=*/false);
  EXPECT_EQ(peak.Bytes(), 0) << "it may be of the point before";
  Say("sys/fs/cgroup/job/memory.peak", "9500000\n");
  EXPECT_EQ(peak.Bytes(), 9'500'000);
}

TEST_F(CgroupPeakTest, ReadsVersion1IfVersion2HasNoPeak) {
  Say("sys/fs/cgroup/memory/container/memory.max_usage_in_bytes", "100\n");
  const CgroupPeak peak(root_.path());
  EXPECT_EQ(peak.Bytes(), 0);
  Say("sys/fs/cgroup/memory/container/memory.max_usage_in_bytes", "300\n");
  EXPECT_EQ(peak.Bytes(), 300);
}

TEST_F(CgroupPeakTest, IsUnknownIfOtherProcessesAreInItOrBelowIt) {
  Say("sys/fs/cgroup/job/memory.peak", "100\n");
  SpawnOptions options;
  options.die_with_parent = true;
  Child other = Child::Spawn({"sleep", "600"}, options);
  const std::string us = std::to_string(::getpid()) + "\n";
  const CgroupPeak alone(root_.path());
  Say("sys/fs/cgroup/job/cgroup.procs", us + std::to_string(other.pid()) + "\n");
  EXPECT_EQ(alone.Bytes(), 0) << "who came while we ran";
  EXPECT_EQ(CgroupPeak(root_.path()).Bytes(), 0);
  Say("sys/fs/cgroup/job/cgroup.procs", us);
  Say("sys/fs/cgroup/job/memory.peak", "100\n");
  EXPECT_EQ(CgroupPeak(root_.path(), true).Bytes(), 0) << "nothing was held";
  MakeDirs(root_ / "sys/fs/cgroup/job/below");
  Say("sys/fs/cgroup/job/memory.peak", "100\n");
  EXPECT_EQ(CgroupPeak(root_.path(), true).Bytes(), 0);
  other.Signal(9);
  other.Wait();
}

TEST_F(CgroupPeakTest, IsUnknownIfTheKernelDoesNotReportIt) {
  EXPECT_EQ(CgroupPeak(root_.path()).Bytes(), 0);
  Say("sys/fs/cgroup/job/memory.peak", "max\n");
  EXPECT_EQ(CgroupPeak(root_.path(), false).Bytes(), 0);
}

// The test's own cgroup below ours, in which the kernel counts memory.
class OwnCgroup {
 public:
  OwnCgroup() {
    const CgroupFolders folders = CgroupsOf("memory");
    for (const auto& [above, file] :
         {std::pair(folders.v2, "memory.peak"), {folders.v1, "memory.max_usage_in_bytes"}}) {
      if (above.empty() || !folder_.empty()) continue;
      const fs::path folder = above.front() / ("ridgeline-test-" + std::to_string(::getpid()));
      std::error_code ec;
      if (!fs::create_directory(folder, ec)) continue;
      if (fs::exists(folder / file, ec)) {
        folder_ = folder;
      } else {
        ::rmdir(folder.c_str());
      }
    }
  }
  OwnCgroup(const OwnCgroup&) = delete;
  OwnCgroup& operator=(const OwnCgroup&) = delete;
  ~OwnCgroup() {
    if (folder_.empty()) return;
    testing::Eventually([&] { return ::rmdir(folder_.c_str()) == 0; });
  }
  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;  // empty: this machine does not allow one
};

class InACgroup : public Exec {
 protected:
  // The result of `exec`, started in that cgroup with this script as its trainer.
  RunResult RunIn(const fs::path& cgroup, const std::string& script) {
    WriteFile(dir_.path() / "mine.sh", script);
    Job job = MakeJob({});
    std::vector<Problem> problems;
    const RunSpec spec =
        BuildSpec({{"model", "llama-10m"}, {"warmup_steps", 1}, {"steps", 2}, {"trainer", "mine"}}, problems);
    job.points = {{PointId(spec), spec, 0}};
    job.trainer.clear();
    job.definition = "name: mine\nabout: x\nversion: \"1\"\ntested: log\nresult: patterns\ncommand: [sh, '" +
                     (dir_.path() / "mine.sh").string() +
                     "', '{{layers}}']\nprocesses: one\nmetrics: [{name: step_time, regex: 'took (\\S+) s', unit: s, "
                     "take: series}]\n";
    testing::WriteJob(job);
    SpawnOptions options;
    options.stdout_file = options.stderr_file = dir_.path() / "exec.log";
    options.die_with_parent = true;
    Child exec = Child::Spawn({"sh", "-c", "echo $$ >\"$0\" && exec \"$@\"", cgroup / "cgroup.procs",
                               testing::FakeProgram("mini_ridgeline"), "exec", JobFile(job), "1000"},
                              options);
    EXPECT_TRUE(exec.Wait().ok()) << Log();
    return testing::ResultOf(job);
  }
};

TEST_F(InACgroup, SeesAMomentaryPeak) {
  const OwnCgroup cgroup;
  if (cgroup.folder().empty()) GTEST_SKIP() << "this machine lets us make no cgroup in which memory is counted";
  // Sampling every second does not see it. What it writes is in the cgroup's page cache, beside its own memory.
  const std::string file = (dir_.path() / "written").string();
  const RunResult result = RunIn(cgroup.folder(), "python3 -c 'x = bytearray(200000000); open(\"" + file +
                                                      "\", \"wb\").write(x)'\n"
                                                      "for i in 1 2 3; do echo \"took 0.$i s\"; done\n");
  EXPECT_EQ(result.status, RunStatus::kOk) << result.message;
  ASSERT_TRUE(result.evidence.contains("memory_at_most"));
  EXPECT_GT(std::stoll(result.evidence.at("memory_at_most")), 300'000'000);
  EXPECT_EQ(result.evidence.at("memory_at_most_from"), "its cgroup's peak, with its page cache");
  EXPECT_EQ(result.evidence.at("memory_from"), "its processes");
}

}  // namespace
}  // namespace ridgeline::node
