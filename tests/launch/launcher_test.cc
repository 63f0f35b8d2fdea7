#include "launch/launcher.h"

#include <gtest/gtest.h>

#include "tests/fakes/fake_launcher.h"
#include "tests/fakes/test_job.h"

namespace ridgeline::launch {
namespace {

using testing::TestJob;

TEST(ToLaunchJob, CarriesWhatASubmissionNeeds) {
  Job job = TestJob("/somewhere/rl-1", {"ok"}, 2);
  job.cpus = 3;
  job.memory_limit_bytes = 5'000'000'000;
  job.nodes = 4;
  job.config = {{"slurm", {{"partition", "large"}}}};
  const LaunchJob launch = ToLaunchJob(job, "/opt/bin/ridgeline");
  EXPECT_EQ(launch.key, job.key);
  EXPECT_EQ(launch.cpus, 3);
  EXPECT_EQ(launch.nodes, 4);
  EXPECT_EQ(launch.config, job.config);
  EXPECT_EQ(launch.memory_bytes, 5'000'000'000);
  EXPECT_EQ(launch.exec, (std::vector<std::string>{"/opt/bin/ridgeline", "exec", "/somewhere/rl-1/job.json"}));
}

TEST(ToLaunchJob, LimitsTheTimeOnlyWhereEveryPointIsLimited) {
  Job job = TestJob("/somewhere/rl-1", {"ok"}, 2);
  job.points[0].time_limit_s = 100;
  EXPECT_EQ(ToLaunchJob(job, "ridgeline").time_limit_s, 0);
  job.points[1].time_limit_s = 200;
  EXPECT_GT(ToLaunchJob(job, "ridgeline").time_limit_s, 300);  // plus the time to start and stop
  EXPECT_LT(ToLaunchJob(job, "ridgeline").time_limit_s, 600);
  // Ranks may take a while to meet, and a point's time begins only then.
  const int64_t alone_s = ToLaunchJob(job, "ridgeline").time_limit_s;
  job.meet_limit_s = 1000;
  EXPECT_EQ(ToLaunchJob(job, "ridgeline").time_limit_s, alone_s);
  job.points[0].spec.ranks = 2;
  job.points[0].spec.communicator = "gloo";
  EXPECT_EQ(ToLaunchJob(job, "ridgeline").time_limit_s, alone_s + 1000);
}

TEST(FakeLauncher, NeverStartsAKeyTwice) {
  FakeLauncher launcher;
  const LaunchJob job = ToLaunchJob(TestJob("/somewhere/rl-1", {"ok"}), "ridgeline");
  launcher.Submit({&job, 1});
  launcher.Submit({&job, 1});
  EXPECT_EQ(launcher.jobs.at(job.key).starts, 1);
  const JobRef ref{job.key, ""};
  EXPECT_EQ(launcher.PollMany({&ref, 1}).front().phase, JobPhase::kEnded);
  EXPECT_FALSE(launcher.Cancel({&ref, 1}).front());
}

}  // namespace
}  // namespace ridgeline::launch
