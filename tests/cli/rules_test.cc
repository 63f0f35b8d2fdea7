// Points of one sweep with different requests, through `plan`, `render` and `run`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// The lines of each script with its requests.
std::vector<std::string> Asked(const std::filesystem::path& folder) {
  std::vector<std::string> all;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".sbatch") continue;
    std::ifstream script(file.path());
    std::string asked;
    for (std::string line; std::getline(script, line);) {
      for (const char* option : {"array", "partition", "nodes", "cpus-per-task", "time"}) {
        if (line.starts_with(std::string("#SBATCH --") + option)) asked += line.substr(10) + " ";
      }
    }
    all.push_back(asked);
  }
  return all;
}

TEST(Rules, OneSweepGoesFromOneRankToSixtyFour) {
  Cli cli;
  const auto rendered = cli.Run({"render", RIDGELINE_SOURCE_DIR "/sweeps/scaling.yaml", "--to", cli.dir / "jobs"});
  ASSERT_EQ(rendered.status.exit_code, 0) << rendered.err;
  EXPECT_THAT(Asked(cli.dir / "jobs"),
              // Includes the ten minutes that ranks have to meet, if they must meet first.
              UnorderedElementsAre("array=0-2 partition=small nodes=1 cpus-per-task=64 time=32 ",
                                   "array=0-8 partition=small nodes=1 cpus-per-task=64 time=42 ",
                                   "array=0-2 partition=large nodes=2 cpus-per-task=64 time=72 ",
                                   "array=0-2 partition=large nodes=4 cpus-per-task=64 time=132 ",
                                   "array=0-2 partition=large nodes=8 cpus-per-task=64 time=132 "));
}

TEST(Rules, PlanSaysWhatJobsWouldAskFor) {
  Cli cli;
  const auto planned = cli.Run({"plan", RIDGELINE_SOURCE_DIR "/sweeps/scaling.yaml"});
  ASSERT_EQ(planned.status.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.err, HasSubstr("4 jobs of 4 points: 1 node, 64 cores, at most 30 min 00 s a point, slurm: "));
  EXPECT_THAT(planned.err, HasSubstr("1 job of 1 point: 8 nodes, 64 cores, at most 2 h 00 min a point, slurm: "));
  EXPECT_THAT(planned.err, HasSubstr(R"("partition":"large")"));
}

constexpr const char* kWrongRules =
    "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [1, 2]}\n"
    "launch:\n  launcher: slurm\n  rules:\n"
    "    - {when: {seed: 1}, set: {slurm: {partitoin: a}}}\n"
    "    - {when: {seed: 2}, set: {slurm: {qos: a}}}\n"
    "    - {when: {seed: 3}, set: {slurm: {memory: many}}}\n";

TEST(Rules, ShowsALaunchersRefusalsAtEachRulesPlace) {
  Cli cli;
  WriteFile(cli.dir / "sweep.yaml", kWrongRules);
  // `run` says first that there is no Slurm here.
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"plan", "sweep.yaml"}, {"render", "sweep.yaml", "--to", "jobs"}}) {
    const auto refused = cli.Run(command);
    EXPECT_EQ(refused.status.exit_code, 2) << command.front();
    EXPECT_THAT(refused.err,
                HasSubstr("sweep.yaml:7:50: launcher slurm: launch: slurm: there is no setting 'partitoin'"));
    EXPECT_THAT(refused.err, HasSubstr("sweep.yaml:9:47: launcher slurm: launch: slurm: memory is \"many\""));
    EXPECT_THAT(refused.err, Not(HasSubstr("sweep.yaml:8:")));
  }
  const auto doctor = cli.Run({"doctor", "sweep.yaml"});
  EXPECT_EQ(doctor.status.exit_code, 3);
  EXPECT_THAT(doctor.out, HasSubstr("there is no setting 'partitoin'"));
  EXPECT_FALSE(std::filesystem::exists(cli.dir / "jobs")) << "nothing was written";
}

TEST(Rules, RunMeasuresEachPointWithWhatItAsksFor) {
  Cli cli;
  WriteFile(cli.dir / "sweep.yaml",
            "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [1, 2, 3]}\n"
            "launch:\n  trainer: [" +
                testing::FakeProgram("fake_trainer").string() +
                ", environment]\n  cpus: 1\n  keep_logs: true\n"
                "  bundle: 3\n  environment: {OMP_WAIT_POLICY: active}\n  rules:\n"
                "    - {when: {seed: 2}, set: {environment: {OMP_NUM_THREADS: 7}}}\n"
                "    - {when: {seed: 9}, set: {cpus: 1}}\n");
  const auto run = cli.Run({"run", "sweep.yaml"});
  EXPECT_EQ(run.status.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("sweep.yaml:12:7: this rule matches nothing"));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs"), 2);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'ok'"), 3);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM sweep_runs WHERE "
                      "setup ->> '$.environment.OMP_NUM_THREADS' = '7' AND seed = 2"),
            1);
  int told = 0;
  for (const auto& log : std::filesystem::recursive_directory_iterator(cli.dir / "ridgeline-out")) {
    if (log.path().filename() != "log.txt") continue;
    const std::string text = ReadFile(log.path());
    EXPECT_THAT(text, HasSubstr("OMP_WAIT_POLICY=active\n"));
    told += text.find("OMP_NUM_THREADS=7\n") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(told, 1);
  EXPECT_THAT(cli.Run({"run", "sweep.yaml"}).out, HasSubstr("3 were already measured"));
  EXPECT_THAT(cli.Run({"doctor", "sweep.yaml"}).out, HasSubstr("local as sweep.yaml has it: this machine, 1 job"));
  EXPECT_TRUE(cli.Run({"db", "check"}).status.ok());
}

TEST(Rules, RenderedJobsAreCollectedAsWhatTheirPointsAreMeasuredAs) {
  Cli cli;
  WriteFile(cli.dir / "sweep.yaml",
            "name: test\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [1, 2]}\n"
            "launch: {trainer: [" +
                testing::FakeProgram("fake_trainer").string() +
                ", ok], cpus: 1, rules: "
                "[{when: {seed: 2}, set: {environment: {A: b}}}]}\n");
  ASSERT_EQ(cli.Run({"render", "sweep.yaml", "--to", "jobs"}).status.exit_code, 0);
  ASSERT_TRUE(ridgeline::Run({"sh", cli.dir / "jobs/run-jobs.sh"}).status.ok());
  const auto collected = cli.Run({"collect", "jobs"});
  EXPECT_EQ(collected.status.exit_code, 0) << collected.err;
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE setup ->> '$.environment.A' = 'b'"), 1);
  EXPECT_THAT(cli.Run({"run", "sweep.yaml"}).out, HasSubstr("2 were already measured"));
}

}  // namespace
}  // namespace ridgeline::cli
