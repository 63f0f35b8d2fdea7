// Mistakes of a user's first day. Each is reported before anything is created.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "run/gpus_here.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Mistakes, SlurmThatIsNotThereIsSaidFirst) {
  Cli cli;
  const auto sweep = cli.WriteSweep(1, "ok");
  cli.prefix = {"/usr/bin/env", "PATH=/nowhere", "SLURM_CONF=/nowhere"};
  const auto run = cli.Run({"run", sweep, "--launcher", "slurm"});
  EXPECT_EQ(run.status.exit_code, 3);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("the launcher slurm cannot run jobs here: "));
  EXPECT_FALSE(std::filesystem::exists(cli.dir / "ridgeline.db"));
  EXPECT_FALSE(std::filesystem::exists(cli.dir / "ridgeline-out"));
}

// What a command that is refused leaves behind would look like a run's.
TEST(Mistakes, ARefusedRunLeavesNothing) {
  namespace fs = std::filesystem;
  Cli cli;
  const std::string sweep = cli.WriteSweep(1, "ok");
  const auto files = [&] {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(cli.dir.path())) {
      const std::string name = entry.path().lexically_relative(cli.dir.path());
      if (name != "out" && name != "err") names.insert(name);
    }
    return names;
  };
  std::ofstream(cli.dir / "no.db") << "not a database";
  std::ofstream(cli.dir / "cpus.yaml") << "name: s\ndefaults: {model: llama-10m}\n"
                                          "launch: {launcher: slurm, slurm: {nodes: many}}\n";
  std::ofstream(cli.dir / "local.yaml") << "name: s\ndefaults: {model: llama-10m}\nlaunch: {local: {nonsense: 1}}\n";
  std::ofstream(cli.dir / "price.yaml") << "name: s\ndefaults: {model: llama-10m}\n"
                                           "launch: {time_limit: auto}\nprice: {device: nowhere}\n";
  const std::set<std::string> before = files();
  const std::vector<std::vector<std::string>> refused = {{"run", sweep, "--db", "no.db"},
                                                         {"run", sweep, "--db", "no.db", "--to", "a/b/c"},
                                                         {"run", "cpus.yaml"},
                                                         {"run", "local.yaml"},
                                                         {"run", "price.yaml"},
                                                         {"run", sweep, "--launcher", "nowhere"},
                                                         {"run", sweep, "--launcher", "slurm"},
                                                         {"db", "delete", "--run", "1", "--yes", "--db", "no.db"},
                                                         {"db", "merge", "no.db", "--db", "no.db"},
                                                         {"db", "prune", "--before", "2026-01-01", "--db", "no.db"},
                                                         {"db", "vacuum", "--db", "no.db"},
                                                         {"cancel", "test", "--db", "no.db"}};
  for (const std::vector<std::string>& command : refused) {
    const auto ran = cli.Run(command);
    EXPECT_NE(ran.status.exit_code, 0) << ::testing::PrintToString(command);
    EXPECT_EQ(files(), before) << ::testing::PrintToString(command) << ran.err;
  }
}

TEST(Mistakes, AGpuThatIsNotThereIsSaidFirst) {
  if (!FindGpusHere().names.empty()) GTEST_SKIP() << "there is one";
  Cli cli;
  std::ofstream(cli.dir / "s.yaml") << "name: s\ndefaults: {model: llama-10m, device: cuda, gpu: h100}\n";
  const auto run = cli.Run({"run", cli.dir / "s.yaml"});
  EXPECT_EQ(run.status.exit_code, 3);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, AllOf(HasSubstr("points have device: cuda, and this machine has no GPU for them: "),
                             HasSubstr("(`launcher: NAME` of a cluster)")));
  EXPECT_FALSE(std::filesystem::exists(cli.dir / "ridgeline.db"));
  EXPECT_EQ(cli.Run({"plan", cli.dir / "s.yaml"}).status.exit_code, 0) << "which needs none";
}

TEST(Mistakes, ASettingThatALauncherRefusesIsToldAtItsPlace) {
  Cli cli;
  const auto said = [&](const std::string& settings) {
    std::ofstream(cli.dir / "s.yaml") << "name: s\ndefaults: {model: llama-10m}\nlaunch:\n  launcher: slurm\n  slurm:\n"
                                      << settings;
    return cli.Run({"plan", cli.dir / "s.yaml"}).err;
  };
  EXPECT_THAT(said("    partition: a\n    nodes: many\n"),
              HasSubstr("s.yaml:7:12: launcher slurm: launch: slurm: nodes is \"many\""));
  EXPECT_THAT(said("    partition: a\n    partitoin: b\n"),
              HasSubstr("s.yaml:7:16: launcher slurm: launch: slurm: there is no setting"));
  const std::string both = said("    nodes: many\n    partitoin: b\n    signal: USR9\n");
  EXPECT_THAT(both, HasSubstr("s.yaml:6:12: launcher slurm: launch: slurm: nodes is \"many\""));
  EXPECT_THAT(both,
              HasSubstr("s.yaml:7:16: launcher slurm: launch: slurm: there is no setting 'partitoin' (settings: "));
  EXPECT_THAT(both, HasSubstr("s.yaml:8:13: launcher slurm: launch: slurm: signal is \"USR9\""));
}

TEST(Mistakes, ASecondFileOfOneNameIsTold) {
  Cli cli;
  const auto first = cli.WriteSweep(1, "ok");
  EXPECT_EQ(cli.Run({"run", first}).status.exit_code, 0);
  const std::string text = ReadFile(first) + "description: another\n";
  WriteFile(cli.dir / "second.yaml", text);
  EXPECT_THAT(cli.Run({"plan", cli.dir / "second.yaml"}).err,
              HasSubstr("this database has a sweep 'test' of another file, " + first.string()));
  EXPECT_THAT(cli.Run({"run", cli.dir / "second.yaml"}).out, HasSubstr("warning: this database has a sweep 'test'"));
  EXPECT_THAT(cli.Run({"run", cli.dir / "second.yaml"}).out, Not(HasSubstr("warning")));
}

TEST(Mistakes, ASweepThatShipsIsFoundFromEverywhere) {
  Cli cli;
  const auto plan = cli.Run({"plan", "sweeps/demo.yaml", "--expand-only"});
  EXPECT_EQ(plan.status.exit_code, 0) << plan.err;
  EXPECT_THAT(cli.Run({"plan", "sweeps/none.yaml"}).err, HasSubstr("there is no file sweeps/none.yaml"));
}

TEST(Mistakes, RenderedFilesAreToldApartAndSubmittedTogether) {
  Cli cli;
  std::ofstream(cli.dir / "s.yaml") << "name: my sweep\ndefaults: {model: llama-10m}\nmatrix: {ranks: [1, 2]}\n"
                                       "launch: {launcher: slurm, ranks_per_node: 1}\n";
  const auto rendered = cli.Run({"render", cli.dir / "s.yaml", "--to", cli.dir / "jobs"});
  ASSERT_EQ(rendered.status.exit_code, 0) << rendered.err;
  std::string names;
  for (const auto& file : std::filesystem::directory_iterator(cli.dir / "jobs"))
    names += file.path().filename().string() + " ";
  EXPECT_THAT(names, AllOf(HasSubstr("my-sweep.1-node.rl-"), HasSubstr("my-sweep.2-nodes.rl-")));
  EXPECT_THAT(rendered.out, ::testing::ContainsRegex("submit all:  for file in [^ ]*/jobs/\\*.sbatch; do .*sbatch.* "
                                                     "\"\\$file\"; done\n$"));
}

TEST(Mistakes, DeletingAsksForConfirmation) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "ok");
  ASSERT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  EXPECT_THAT(cli.Run({"db", "delete", "--sweep", "test", "--dry-run"}).out,
              HasSubstr("ridgeline.db: 2 runs, 2 jobs, 1 sweep would be deleted; nothing was changed"));
  const auto unsure = cli.Run({"db", "delete", "--sweep", "test"});
  EXPECT_EQ(unsure.status.exit_code, 2);
  EXPECT_THAT(unsure.err, HasSubstr("--yes confirms it"));
  EXPECT_EQ(cli.Run({"db", "delete"}).status.exit_code, 2);
  EXPECT_THAT(cli.Run({"db", "delete", "--sweep", "test", "--yes"}).out, HasSubstr("deleted 2 runs, 2 jobs, 1 sweep;"));
  EXPECT_THAT(cli.Run({"run", sweep}).out, HasSubstr("2 ok")) << "measured anew";
}

}  // namespace
}  // namespace ridgeline::cli
