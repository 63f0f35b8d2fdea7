// End to end: a sweep of the real trainer loses its node, and continues where it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "run/result.h"
#include "run/spec.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int64_t kSteps = 1500;

fs::path WriteTrainingSweep(const Cli& cli, const std::string& more) {
  fs::path file = cli.dir.path() / "sweep.yaml";
  std::ofstream(file) << "name: test\n"
                         "defaults: {family: llama, layers: 2, hidden: 32, heads: 2, ffn: 64, vocab: 256, seq_length: "
                         "32}\nmeasure: {warmup_steps: 0, steps: "
                      << kSteps << "}\nlaunch: {cpus: 1}\n"
                      << more;
  return file;
}

// The exec of the only job, once its trainer has done `steps` steps; nothing if it never did.
std::optional<pid_t> ExecAtStep(const Cli& cli, int64_t steps) {
  std::optional<pid_t> exec;
  testing::Eventually([&] {
    exec.reset();
    for (const pid_t pid : cli.Processes()) {
      std::string command = testing::CommandLineOf(pid);
      std::replace(command.begin(), command.end(), '\0', ' ');
      if (command.starts_with(Program().string() + " exec ")) exec = pid;
    }
    return exec && cli.StepsDone() >= steps;
  });
  return exec;
}

TEST(Preemption, APreemptedPointIsRunAgainAndContinues) {
  Cli whole;
  ASSERT_EQ(whole.Run({"run", WriteTrainingSweep(whole, "")}).status.exit_code, 0);
  const std::string sql = "SELECT loss FROM runs WHERE status = 'ok'";
  const Cell loss = whole.OpenStore().Query(sql).rows.at(0).at(0);

  Cli cli;
  const auto sweep = WriteTrainingSweep(cli, "checkpoint: {dir: state, every_steps: 1000}\n");
  Child run = cli.Start({"run", sweep});
  const auto exec = ExecAtStep(cli, 20);
  ASSERT_TRUE(exec);
  ::kill(*exec, SIGUSR1);
  const auto output = cli.Finish(run);
  ASSERT_EQ(output.status.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(output.out, HasSubstr("preempted"));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE reason = 'preempted'"), 1);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'ok'"), 1);
  EXPECT_EQ(cli.OpenStore().Query(sql).rows.at(0).at(0), loss);
  EXPECT_GE(cli.Count("SELECT CAST(evidence ->> '$.resumed_from_step' AS INTEGER) FROM runs"), 20);
  // A folder for each point and measurement, beside the jobs, which are created and removed.
  const std::string id = std::get<std::string>(cli.OpenStore().Query("SELECT point_id FROM runs").rows.at(0).at(0));
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(cli.dir.path() / "ridgeline-out/state")) folders.push_back(entry);
  ASSERT_EQ(folders.size(), 1U);
  EXPECT_TRUE(folders[0].filename().string().starts_with(id + "-")) << folders[0] << ": cpus are of its setup";
  EXPECT_TRUE(fs::exists(folders[0] / "step-00001500/manifest.json"));
}

TEST(Preemption, ACancelledPointIsCancelledAndContinuesToo) {
  Cli cli;
  const auto sweep = WriteTrainingSweep(cli, "checkpoint: {dir: state, every_steps: 200}\n");
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(ExecAtStep(cli, 220));
  run.Signal(SIGINT);
  const auto output = cli.Finish(run);
  EXPECT_EQ(output.status.exit_code, 130) << output.out << output.err;
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'cancelled'"), 1);
  ASSERT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  EXPECT_GE(cli.Count("SELECT CAST(evidence ->> '$.resumed_from_step' AS INTEGER) FROM runs WHERE status = 'ok'"), 200);
}

TEST(Preemption, ExecRunAgainContinuesFromTheNewestWholeFiles) {
  Cli cli;
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec({{"family", "llama"},
                            {"layers", 2},
                            {"hidden", 32},
                            {"heads", 2},
                            {"ffn", 64},
                            {"vocab", 256},
                            {"seq_length", 32},
                            {"warmup_steps", 0},
                            {"steps", kSteps}},
                           problems);
  ASSERT_TRUE(problems.empty());
  Job job;
  job.key = "rl-test";
  job.sweep = "test";
  job.cpus = 1;
  job.trainer = {Program().parent_path() / "ridgeline-train"};
  job.job_dir = cli.dir.path() / "ridgeline-out/jobs/whole";
  job.points = {{PointId(spec), spec, 0}};
  testing::WriteJob(job);
  ASSERT_EQ(cli.Run({"exec", JobFile(job)}).status.exit_code, 0);
  const std::vector<double> loss = testing::ResultOf(job).loss;

  job.job_dir = cli.dir.path() / "ridgeline-out/jobs/parts";
  job.points[0].spec.checkpoint_dir = "state";
  job.points[0].spec.checkpoint_every_steps = 200;
  job.points[0].spec.checkpoint_keep = 9;
  testing::WriteJob(job);
  fs::remove_all(cli.dir.path() / "ridgeline-out/jobs/whole");
  Child exec = cli.Start({"exec", JobFile(job)});
  ASSERT_TRUE(ExecAtStep(cli, 450));
  exec.Signal(SIGTERM);
  EXPECT_EQ(cli.Finish(exec).status.exit_code, 130);
  const RunResult part = testing::ResultOf(job);
  EXPECT_EQ(EndOf(part), InfrastructureReason::kPreempted) << part.message;
  ASSERT_GE(part.loss.size(), 450U);
  ASSERT_LT(part.loss.size(), loss.size());

  // The state that it saved on leaving loses a file; the earlier one is complete.
  const fs::path state = PointDir(job.job_dir, job.points[0].id) / "state";
  fs::remove(state / fmt::format("step-{:08}", part.loss.size()) / "manifest.json");
  ASSERT_EQ(cli.Run({"exec", JobFile(job)}).status.exit_code, 0);
  const RunResult rest = testing::ResultOf(job);
  EXPECT_EQ(rest.status, RunStatus::kOk) << rest.message;
  EXPECT_EQ(rest.loss, loss);
  EXPECT_EQ(rest.evidence.at("resumed_from_step"), std::to_string((part.loss.size() - 1) / 200 * 200));
}

}  // namespace
}  // namespace ridgeline::cli
