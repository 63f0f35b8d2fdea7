// Drivers and controllers that die or hang at any moment. In the end every point has one result that stands.
#include <random>

#include "tests/cluster/slurm/slurm.h"

namespace ridgeline {
namespace {

using testing::Eventually;
using testing::Slurm;
using testing::SlurmCli;

class SlurmKills : public testing::ThroughAClient {};

TEST_P(SlurmKills, ADriverKilledAtAnyMomentLosesAndDoublesNothing) {
  const Slurm slurm({"--max-array=5"});
  std::mt19937 random = testing::SeededRandom();
  int kills = 0;
  while (kills < 20) {
    SlurmCli cli;
    const auto sweep = cli.Write({.points = 12, .trainer = "slow=300", .slurm = client_});
    // The driver does most of its work at once; then it waits.
    cli.KillDrivers(sweep, random, 150, 1500, kills);
    cli.ExpectOk(cli.Run({"run", sweep}));
    cli.ExpectEachRanOnce(12);
    if (HasFailure()) break;
  }
}

// A killed controller may lose jobs that it has acknowledged, and give their ids to others. If it forgot that a job has
// begun, it starts the job again. The job's node, which still has the first one, has the new one cancelled. It does the
// same with a job whose id it was told to end before.
TEST_P(SlurmKills, AControllerKilledInABurstOfSubmitsLosesNoPoint) {
  const Slurm slurm({"--max-array=3", "--message-timeout=3"});
  std::mt19937 random = testing::SeededRandom();
  SlurmCli cli;
  // A controller that is gone may cost a node many jobs at once. That does not mean that all jobs will fail.
  const auto sweep = cli.Write({.points = 40,
                                .trainer = "slow=50",
                                .slurm = client_,
                                .launch = "retry: {lost: 3, node: 3, start: 3}\n  give_up_after: 40"});
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(cli.WaitToRead(run, "jobs go to"));  // without a Slurm at its start it ends at once
  for (int kill = 0; kill < 3; ++kill) {
    run.WaitFor(static_cast<int64_t>(random() % 400) * 1'000'000);
    slurm.Controller("kill");
    run.WaitFor(300'000'000);
    slurm.Controller("start");
  }
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(40, 40);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'cancelled'"), 0) << cli.NotOk();
}

// A controller that hangs also misses its nodes' answers. When it continues, it may start a job again that its node
// already has. The node then has that job cancelled. The point has a result for that job, and runs again.
TEST_P(SlurmKills, AControllerThatHangsInASubmitGetsNoJobTwice) {
  const Slurm slurm({"--max-array=3", "--message-timeout=3"});
  SlurmCli cli;
  Child run = cli.Start({"run", cli.Write({.points = 40,
                                           .trainer = "slow=50",
                                           .slurm = client_,
                                           .launch = "retry: {lost: 3, node: 3, start: 3}\n  give_up_after: 40"})});
  ASSERT_TRUE(Eventually([] { return !Slurm::Jobs().empty(); }));
  slurm.Controller("pause");
  ASSERT_TRUE(cli.WaitToRead(run, "asking again"));
  slurm.Controller("continue");
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(40, 40);
  EXPECT_LE(cli.Starts(), cli.Count("SELECT count(*) FROM results")) << "a job of no result ran\n" << cli.NotOk();
}

TEST_P(SlurmKills, AControllerThatIsRestartedIsAskedAgain) {
  const Slurm slurm;
  SlurmCli cli;
  Child run = cli.Start({"run", cli.Write({.points = 6, .trainer = "slow=3000", .slurm = client_})});
  ASSERT_TRUE(cli.WaitForTrainers(6));
  slurm.Controller("kill");
  ASSERT_TRUE(cli.WaitToRead(run, "asking again"));
  slurm.Controller("start");
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectEachRanOnce(6);
}

// The controller comes back without knowing any job, and ends the jobs that it finds on its nodes.
TEST_P(SlurmKills, JobsOfAControllerThatForgotEverythingAreRunAgain) {
  constexpr int kPoints = 80;
  const Slurm slurm;
  SlurmCli cli;
  const std::string told = (cli.dir.path() / "told").string();
  Child run = cli.Start({"run", cli.Write({.points = kPoints,
                                           .trainer = "steps-as-told=" + told,  // at work until it is told to end
                                           .slurm = client_,
                                           .launch = "retry: {lost: 3, node: 5, start: 3}\n  give_up_after: 80"})});
  ASSERT_TRUE(cli.WaitForTrainers(10));
  slurm.Controller("wipe");
  slurm.Controller("start");
  EXPECT_TRUE(Eventually([&] { return cli.Count("SELECT count(*) FROM results WHERE reason = 'lost'") > 0; }));
  for (int seed = 0; seed < kPoints; ++seed) WriteFile(fmt::format("{}.{}", told, seed), std::string(100, '.'));
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(kPoints, kPoints);
}

INSTANTIATE_TEST_SUITE_P(Through, SlurmKills, ::testing::Values("tools", "agent"),
                         [](const auto& client) { return client.param; });

}  // namespace
}  // namespace ridgeline
