// Nights that Slurm itself starts: the output of `nightly install --scrontab`, given to a real scrontab.

#include "regress/nights.h"
#include "tests/cluster/slurm/slurm.h"

namespace ridgeline {
namespace {

using testing::Eventually;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::Slurm;
using testing::SlurmCli;

TEST(SlurmNights, ScrontabTakesWhatInstallPrintsAndRunsTheNight) {
  const char* path = std::getenv("PATH");
  if (FindProgram("scrontab", path == nullptr ? "" : path).empty()) {
    GTEST_SKIP() << "scrontab is not installed: Debian 12's slurm-client lacks it, that of later releases has it";
  }
  const Slurm slurm({"--nodes=1", "--config=ScronParameters=enable"});
  SlurmCli cli;
  const auto sweep = cli.Write({.points = 2, .launch = "time_limit: 5m"});
  const auto install =
      cli.Run({"nightly", "install", sweep, "--scrontab", "--at", "3:07", "--dir", "my nights", "--to", "crontab"});
  ASSERT_EQ(install.status.exit_code, 0) << install.err;
  Slurm::Ask({"scrontab", cli.dir / "crontab"});
  EXPECT_THAT(Slurm::Ask({"scrontab", "-l"}), HasSubstr("7 3 * * * "));
  const auto jobs = Slurm::Jobs();
  ASSERT_THAT(jobs, SizeIs(1)) << "it waits for its time";
  const std::string job = jobs.begin()->first;
  EXPECT_EQ(jobs.begin()->second, "PENDING");
  const std::string shown = Slurm::Ask({"scontrol", "show", "job", job});
  EXPECT_THAT(shown, HasSubstr("JobName=rl-nightly"));
  EXPECT_THAT(shown, HasSubstr("T03:07:00")) << "when it begins";

  // Nobody can wait until then, and nothing else starts such a job, so another job runs its script.
  const std::string script = cli.dir / "script";
  Slurm::Ask({"scontrol", "write", "batch_script", job, script});
  ridgeline::Run({"sbatch", "--wait", "--mem=1G", "--chdir=/", "--output=/dev/null", script});
  std::vector<std::string> problems;
  const std::vector<regress::Night> nights = regress::ReadNights(cli.dir / "my nights/nights", &problems);
  ASSERT_THAT(nights, SizeIs(1));
  EXPECT_EQ(nights[0].exit_code, 4) << regress::NightWords(nights[0])
                                    << ReadFile(cli.dir / "my nights/nights" / nights[0].name / "run.log");
  EXPECT_EQ(cli.Starts(), 2);
  Slurm::Ask({"scrontab", "-r"});
  EXPECT_TRUE(Eventually([&] { return Slurm::JobsThatAre("PENDING") + Slurm::JobsThatAre("RUNNING") == 0; }));
}

}  // namespace
}  // namespace ridgeline
