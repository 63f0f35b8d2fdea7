// Trainers in containers on a real Slurm: exec runs on the host, and srun starts the trainer in its container. Pyxis is
// a stand-in.
#include "tests/cluster/slurm/slurm.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Slurm;
using testing::SlurmCli;

class SlurmContainers : public ::testing::Test {
 protected:
  SlurmContainers() {
    WriteFile(plugins_ / "plugstack.conf", "required " RIDGELINE_PYXIS_STAND_IN "\n");
    slurm_.emplace(std::vector<std::string>{"--config=PlugStackConfig=" + (plugins_ / "plugstack.conf").string()});
  }

  // `processes`: how the definition starts its two ranks, one on each node.
  std::filesystem::path Write(const std::string& processes, const std::string& image, const std::string& launch = "") {
    WriteFile(cli_.dir / "mine.sh",
              "trap 'echo saved; exit 3' TERM\n"
              "echo \"image $FROM_IMAGE, both $SET_BY_BOTH, in $PWD\" >\"said-$SLURMD_NODENAME\"\n"
              "[ \"${RANK:-$SLURM_PROCID}\" = 0 ] || exit 0\n"
              "[ -z \"$HANGS\" ] || while true; do sleep 0.1; done\n"
              "for i in 1 2 3; do echo \"step $i: 5 ms\"; done\n");
    WriteFile(cli_.dir / "mine.yaml",
              fmt::format("name: mine\nabout: in an image\nversion: \"1\"\ntested: log\nresult: patterns\n"
                          "command: [/bin/sh, '{}', '{{{{layers}}}}']\nprocesses: {}\nsupports: {{seq_length: any}}\n"
                          "metrics: [{{name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, "
                          "take: series}}]\n",
                          (cli_.dir / "mine.sh").string(), processes));
    return cli_.WriteText(
        fmt::format("name: test\ndefaults: {{model: llama-5m, seq_length: 32, ranks: 2, trainer: mine}}\n"
                    "measure: {{warmup_steps: 0, steps: 3}}\n"
                    "launch:\n  launcher: slurm\n  cpus: 1\n  nodes: 2\n  keep_logs: true\n  retry: {{image: 0}}\n"
                    "  slurm: {{client: tools, container: '{}'}}\n  {}\n",
                    image, launch));
  }
  std::string Said(const std::string& node) const { return ReadFileIfThere(cli_.dir / ("said-" + node)).value_or(""); }

  TempDir plugins_;
  std::optional<Slurm> slurm_;
  SlurmCli cli_;
};

TEST_F(SlurmContainers, RanksAreInThemWhoeverStartsThese) {
  for (const char* processes : {"ours", "srun"}) {
    cli_.ExpectOk(cli_.Run({"run", Write(processes, "team/image:1",
                                         "environment: {SET_BY_BOTH: sweep, BY: " + std::string(processes) + "}")}));
    const std::string words = "image yes, both sweep, in " + cli_.dir.path().string();
    EXPECT_THAT(Said("n1") + Said("n2"), HasSubstr(words + "\n" + words)) << processes;
  }
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM runs WHERE status = 'ok' AND step_median_ns = 5000000"), 2);
}

TEST_F(SlurmContainers, TheTrainerIsToldPastSrunAndNothingIsLeft) {
  cli_.Run({"run", Write("ours", "team/image:1", "time_limit: 2s\n  environment: {HANGS: yes}")});
  EXPECT_EQ(cli_.Statuses(), "timeout");
  EXPECT_THAT(cli_.Of("evidence", "timeout"), HasSubstr("saved"));
}

TEST_F(SlurmContainers, AnImageThatCannotBeHadIsSaidInItsWords) {
  cli_.Run({"run", Write("ours", "team/missing:1")});
  EXPECT_EQ(cli_.Statuses(), "infrastructure");
  EXPECT_EQ(cli_.Of("reason", "infrastructure"), "image");
  EXPECT_THAT(cli_.Of("message", "infrastructure"), AllOf(HasSubstr("the container does not start"),
                                                          HasSubstr("failed to import docker image: team/missing:1")));
}

}  // namespace
}  // namespace ridgeline
