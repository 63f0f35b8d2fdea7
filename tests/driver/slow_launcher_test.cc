// Launchers that take a second a job, and those that answer `later`: how soon an interrupt is heard, and what is paid
// for until then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/driver/world.h"

namespace ridgeline::driver {
namespace {

// A launcher with a queue that takes a second a job.
void Slow(World& world) {
  world.launcher.job_takes_ns = 1'000'000'000;
  world.launcher.max_jobs = 40;
  world.launcher.bulk = false;
  world.launcher.on_poll = [](FakeLauncher::Entry& entry) { entry.phase = launch::JobPhase::kRunning; };
}

TEST(SlowLauncher, StopsSoonWhereALauncherTakesASecondAJob) {
  World world(40);
  Slow(world);
  world.interrupts = [&] { return world.launcher.jobs.size() < 2 ? 0 : 1; };
  const RunSummary stopped = world.Run();
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_FALSE(stopped.left);
  EXPECT_EQ(stopped.live_jobs, 0);
  EXPECT_EQ(world.launcher.jobs.size(), 2U);
  EXPECT_EQ(world.launcher.cancelled.size(), 2U);
  EXPECT_LE(world.launcher.calls_about_jobs, 10) << "it asks about jobs that the launcher never got";
  EXPECT_EQ(world.Count("SELECT count(*) FROM jobs WHERE state IN ('intent', 'submitted', 'running')"), 0);
  world.interrupts = [] { return 0; };
  world.launcher.job_takes_ns = 0;
  world.launcher.on_poll = [&](FakeLauncher::Entry& entry) { world.Finish(entry); };
  EXPECT_EQ(world.Run().ok, 40) << "what was not begun is run by the next run";
}

TEST(SlowLauncher, LeavesAtTheSecondInterruptWhereALauncherTakesASecondAJob) {
  World world(40);
  Slow(world);
  world.interrupts = [&] {
    if (!world.launcher.cancelled.empty()) return 2;
    return world.launcher.jobs.size() < 10 ? 0 : 1;
  };
  const RunSummary left = world.Run();
  EXPECT_TRUE(left.interrupted);
  EXPECT_EQ(world.launcher.jobs.size(), 10U);
  EXPECT_EQ(world.launcher.cancelled.size(), 1U) << "the first batch";
  EXPECT_EQ(left.live_jobs, 10);
}

TEST(SlowLauncher, SubmitsAgainAtOnceWhatABulkLauncherLeftForLater) {
  World world(40);
  world.launcher.max_jobs = 40;
  world.launcher.most_a_call = 15;
  EXPECT_EQ(world.Run().ok, 40);
  EXPECT_EQ(world.launcher.submit_calls, 3);
  ExpectEveryPointMeasuredOnce(world, 40);
}

TEST(SlowLauncher, EndsWhatABulkLauncherLeftForLaterWithoutAskingItAbout) {
  World world(40);
  world.launcher.max_jobs = 40;
  world.launcher.most_a_call = 15;
  world.launcher.on_poll = [](FakeLauncher::Entry& entry) { entry.phase = launch::JobPhase::kRunning; };
  world.interrupts = [&] { return world.launcher.jobs.empty() ? 0 : 1; };
  EXPECT_EQ(world.Run().live_jobs, 0);
  EXPECT_EQ(world.launcher.cancelled.size(), 15U);
  EXPECT_EQ(world.Count("SELECT count(*) FROM jobs WHERE state IN ('intent', 'submitted', 'running')"), 0);
}

TEST(SlowLauncher, SubmitsFewJobsACallWhereALauncherTakesASecondAJob) {
  World world(40);
  world.launcher.job_takes_ns = 1'000'000'000;
  world.launcher.max_jobs = 20;
  world.launcher.bulk = false;
  EXPECT_EQ(world.Run().ok, 40);
  EXPECT_EQ(world.launcher.submit_calls, 40);
  ExpectEveryPointMeasuredOnce(world, 40);
}

}  // namespace
}  // namespace ridgeline::driver
