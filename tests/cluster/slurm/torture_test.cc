// Kills of all participants at random moments, on a real Slurm.
#include "tests/torture/torture.h"
#include "tests/cluster/slurm/slurm.h"

namespace ridgeline::testing {
namespace {

class SlurmTorture : public ThroughAClient {};

TEST_P(SlurmTorture, OnSlurm) {
  const Slurm slurm;
  Torture("slurm", [&](uint64_t seed) {
    using enum Blow;
    SlurmCli cli;
    constexpr int kPoints = 10;
    const auto sweep = cli.Write({.points = kPoints, .trainer = "own=300", .slurm = client_, .launch = "bundle: 2"});
    return Round({cli,
                  sweep,
                  kPoints,
                  {kKillDriver, kKillHelper, kKillExec, kKillTrainer, kKillEverything},
                  [&] { return cli.Processes(); }},
                 seed)
        .Play();
  });
}

INSTANTIATE_TEST_SUITE_P(Through, SlurmTorture, ::testing::Values("tools", "agent"),
                         [](const auto& client) { return client.param; });

}  // namespace
}  // namespace ridgeline::testing
