// Trainers from definitions, on a real Slurm: PyTorch's own launcher on two nodes, and ranks that srun starts.
#include "tests/cluster/slurm/slurm.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using testing::Slurm;
using testing::SlurmCli;

constexpr const char* kTorch = RIDGELINE_SOURCE_DIR "/tests/trainers/torch";

TEST(SlurmTrainers, PyTorchsRanksOnTwoNodesAreMeasuredBesideOurs) {
  // Ranks of torchrun meet in such a store. Debian's PyTorch from version 2 on lacks a library that the store requires.
  const auto meets =
      ridgeline::Run({"python3", "-c", "import torch.distributed as d; d.TCPStore('127.0.0.1', 0, 1, True)"});
  if (meets.stderr_text.find("built without libuv") != std::string::npos) GTEST_SKIP() << meets.stderr_text;
  const Slurm slurm;
  SlurmCli cli;
  const auto sweep = cli.WriteText(
      fmt::format("name: test\n"
                  "defaults: {{family: stack, layers: 1, hidden: 64, heads: 2, ffn: 256, seq_length: 32, precision: "
                  "fp32, ranks: 2}}\n"
                  "matrix: {{trainer: [ridgeline, torch-ddp]}}\n"
                  "measure: {{warmup_steps: 1, steps: 2}}\n"
                  "launch: {{launcher: slurm, cpus: 1, nodes: 2, time_limit: 5m, environment: {{TORCH_TRAINERS: {}}}, "
                  "slurm: {{client: tools}}}}\n",
                  kTorch));
  cli.ExpectOk(cli.Run({"run", "--trainers", kTorch, sweep}));
  cli.ExpectOneFinalResultEach(2, 2);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs WHERE evidence ->> '$.node' LIKE 'n% n%'"), 2) << "not on two nodes";
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT parameters) FROM runs"), 1);
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT model_causal_flops_per_step) FROM runs"), 1);
  EXPECT_EQ(cli.Count("SELECT version GLOB '[1-9]*.[0-9]*' FROM runs WHERE trainer = 'torch-ddp'"), 1);
  EXPECT_EQ(cli.Count("SELECT cold_tokens_per_s > 0 AND steady_tokens_per_s IS NULL FROM runs WHERE trainer = "
                      "'torch-ddp'"),
            1)
      << "it says a mean over all steps";
}

TEST(SlurmTrainers, AGptOfPyTorchIsMeasuredBesideOurs) {
  const Slurm slurm;
  SlurmCli cli;
  const auto sweep = cli.WriteText(
      fmt::format("name: test\n"
                  "defaults: {{family: gpt, layers: 1, hidden: 64, heads: 2, ffn: 256, vocab: 256, positions: 64, "
                  "seq_length: 32, precision: fp32}}\n"
                  "matrix: {{trainer: [ridgeline, torch-gpt]}}\n"
                  "measure: {{warmup_steps: 1, steps: 3}}\n"
                  "launch: {{launcher: slurm, cpus: 1, time_limit: 5m, environment: {{TORCH_TRAINERS: {}}}, "
                  "slurm: {{client: tools}}}}\n",
                  kTorch));
  cli.ExpectOk(cli.Run({"run", "--trainers", kTorch, sweep}));
  cli.ExpectOneFinalResultEach(2, 2);
  EXPECT_EQ(cli.Count("SELECT count(DISTINCT model_causal_flops_per_step) FROM runs"), 1);
  EXPECT_EQ(cli.Count("SELECT version GLOB '[1-9]*.[0-9]*' FROM runs WHERE trainer = 'torch-gpt'"), 1);
  EXPECT_EQ(cli.Count("SELECT json_array_length(all_steps_ns) FROM runs WHERE trainer = 'torch-gpt'"), 4);
}

TEST(SlurmTrainers, AllNodesMakeOneResultWhicheverEndsFirst) {
  const Slurm slurm;
  SlurmCli cli;
  cli.ExpectUnanswered(cli.Run({"run", cli.WriteTwoNodes("slurm", "client: tools", cli.dir.path().string())}));
  cli.ExpectOneFinalResultEach(4, 3);
  cli.ExpectTwoNodes();
}

TEST(SlurmTrainers, SrunStartsTheRanksOfOneThatWantsIt) {
  const Slurm slurm;
  SlurmCli cli;
  WriteFile(cli.dir / "mine.sh",
            "echo \"rank $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME\" >>\"$1/$SLURM_PROCID\"\n"
            "[ \"$SLURM_PROCID\" = 0 ] || exit 0\n"
            "for i in 1 2 3; do echo \"step $i: 5 ms\"; done\n");
  WriteFile(cli.dir / "mine.yaml",
            fmt::format("name: mine\nabout: ranks by srun\nversion: \"1\"\ntested: log\nresult: patterns\n"
                        "command: [/bin/sh, '{}', '{}', '{{{{layers}}}}']\nprocesses: srun\n"
                        "supports: {{seq_length: any}}\n"
                        "metrics: [{{name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, "
                        "take: series}}]\n",
                        (cli.dir / "mine.sh").string(), cli.dir.path().string()));
  const auto sweep = cli.WriteText(
      "name: test\n"
      "defaults: {model: llama-5m, seq_length: 32, ranks: 2, trainer: mine}\n"
      "measure: {warmup_steps: 0, steps: 3}\n"
      "launch: {launcher: slurm, cpus: 1, nodes: 2, time_limit: 5m, slurm: {client: tools}}\n");
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectOneFinalResultEach(1, 1);
  EXPECT_THAT(ReadFile(cli.dir / "0"), HasSubstr("rank 0 of 2 on n"));
  EXPECT_THAT(ReadFile(cli.dir / "1"), HasSubstr("rank 1 of 2 on n"));
  EXPECT_NE(ReadFile(cli.dir / "0").substr(13), ReadFile(cli.dir / "1").substr(13)) << "each on a node of its own";
  EXPECT_EQ(cli.Count("SELECT step_median_ns FROM runs"), 5'000'000);
  const auto here = cli.Run({"plan", sweep, "--launcher", "local"});
  EXPECT_THAT(here.err, HasSubstr("trainer mine has its ranks started by srun, and the launcher is local"));
}

}  // namespace
}  // namespace ridgeline
