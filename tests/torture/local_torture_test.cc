// Tortures the launcher of this machine: kills and stops, disks that are full, failing or read-only, processes that do
// not start, a clock that jumps, and other commands at the same time.
#include <sched.h>
#include <sys/mount.h>

#include "tests/torture/torture.h"

namespace ridgeline::testing {
namespace {

class LocalCli final : public ClusterCli {
 protected:
  void ExpectNothingOnTheCluster() override {
    EXPECT_TRUE(Eventually([&] { return Processes().empty(); })) << "processes are left";
  }
};

// Mounts a small disk over a folder, in a mount namespace of this process, so that nothing is left whatever ends the
// test. Returns false if we lack the rights.
bool MountSmallDisk(const std::filesystem::path& folder) {
  static const bool has_namespace =
      ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return has_namespace && ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=96m,nr_inodes=2000") == 0;
}

TEST(Torture, OnThisMachine) {
  Torture("local", [](uint64_t seed) {
    using enum Blow;
    LocalCli cli;
    FaultyMachine machine(cli.dir.path());
    cli.prefix = machine.Prefix();
    std::vector<Blow> blows = {kKillDriver,   kKillExec,    kKillKeeper,  kKillTrainer, kKillEverything, kStop,
                               kReadOnlyDisk, kFailingDisk, kShortWrites, kNoProcesses, kClockJump,      kBeside};
    const bool has_disk = MountSmallDisk(cli.dir.path());
    if (has_disk) blows.insert(blows.end(), {kFullDisk, kNoInodes});
    constexpr int64_t kPoints = 10;
    const auto sweep = cli.WriteText(
        fmt::format("name: test\ndefaults: {{model: llama-10m, seq_length: 64}}\nmatrix: {{seed: 1..{}}}\n"
                    "launch: {{trainer: [{}, own=150], cpus: 1, bundle: 3}}\n",
                    kPoints, FakeProgram("fake_trainer").string()));
    auto hits =
        Round({cli, sweep, kPoints, blows, [&] { return cli.Processes(); }, &machine, cli.dir.path()}, seed).Play();
    if (has_disk) ::umount2(cli.dir.path().c_str(), MNT_DETACH);
    return hits;
  });
}

}  // namespace
}  // namespace ridgeline::testing
