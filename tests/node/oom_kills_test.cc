// Kills because memory ran out, counted in kernel files made for the test. The processes are real.
#include "node/oom_kills.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/files.h"
#include "base/process.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::node {
namespace {

class OomKillsTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    MakeDirs((root_ / name).parent_path());
    WriteFile(root_ / name, text);
  }

  TempDir root_;
};

TEST_F(OomKillsTest, AreThoseOfOurOwnCgroupAndNoOthers) {
  Write("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  Write("proc/vmstat", "pgfault 9\noom_kill 4\n");
  Write("sys/fs/cgroup/slurm/memory.events", "low 0\noom 3\noom_kill 3\n");
  Write("sys/fs/cgroup/slurm/job_7/step_0/memory.events", "low 0\noom 0\noom_kill 0\n");
  const OomWatch watch(root_.path());
  Write("proc/vmstat", "pgfault 9\noom_kill 9\n");
  Write("sys/fs/cgroup/slurm/memory.events", "low 0\noom 8\noom_kill 8\n");
  EXPECT_EQ(watch.Since().count, 0) << "of another job of the node";
  Write("sys/fs/cgroup/slurm/job_7/step_0/memory.events", "low 0\noom 1\noom_kill 2\n");
  EXPECT_EQ(watch.Since().count, 2);
}

TEST_F(OomKillsTest, CountsKillsInCgroupsOfVersion1) {
  // In a container, with the host's path.
  Write("proc/self/cgroup", "9:cpuset:/x\n4:memory:/kubepods/pod/container\n0::/\n");
  Write("proc/vmstat", "oom_kill 4\n");
  Write("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  const OomWatch watch(root_.path());
  Write("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 6\n");
  EXPECT_EQ(watch.Since().count, 1);
}

TEST_F(OomKillsTest, AreOursIfNoOtherProcessIsInTheCgroup) {
  Write("proc/self/cgroup", "0::/job\n");
  Write("sys/fs/cgroup/job/memory.events", "oom_kill 0\n");
  const auto alone = [&](const std::string& processes) {
    Write("sys/fs/cgroup/job/cgroup.procs", processes);
    return OomWatch(root_.path()).Since().ours_alone;
  };
  const std::string us = std::to_string(::getpid()) + "\n";
  EXPECT_TRUE(alone(us));
  EXPECT_TRUE(alone(us + std::to_string(::getppid()) + "\n"));
  EXPECT_FALSE(alone(""));
  SpawnOptions options;
  options.die_with_parent = true;
  Child other = Child::Spawn({"sleep", "600"}, options);
  EXPECT_FALSE(alone(us + std::to_string(other.pid()) + "\n")) << "another job's exec, started from the same shell";
  // A process that came while we ran.
  Write("sys/fs/cgroup/job/cgroup.procs", us);
  const OomWatch watch(root_.path());
  Write("sys/fs/cgroup/job/cgroup.procs", us + std::to_string(other.pid()) + "\n");
  EXPECT_FALSE(watch.Since().ours_alone);
  other.Signal(9);
  other.Wait();
}

TEST_F(OomKillsTest, KillsOfTheWholeMachineAreNotOurs) {
  Write("proc/vmstat", "pgfault 9\noom_kill 4\n");
  const OomWatch watch(root_.path());
  Write("proc/vmstat", "pgfault 9\noom_kill 5\n");
  EXPECT_EQ(watch.Since().count, 1);
  EXPECT_FALSE(watch.Since().ours_alone);
}

}  // namespace
}  // namespace ridgeline::node
