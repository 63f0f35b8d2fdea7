// Uses the tests' own NVML, because no machine has a card on demand.
#include "node/device_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "node/defined.h"
#include "tests/fakes/fake_nvml.h"

namespace ridgeline::node {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

const Nvml& Load() {
  static const Nvml fake = MakeFakeNvml();
  return fake;
}

class DeviceMemoryOf : public ::testing::Test {
 protected:
  DeviceMemoryOf() {
    ThisCard() = &card_;
    SpawnOptions options;
    options.die_with_parent = true;
    for (int i = 0; i < 2; ++i) children_.push_back(Child::Spawn({"sleep", "60"}, options));
  }
  ~DeviceMemoryOf() override {
    for (Child& child : children_) {
      child.Signal(SIGKILL);
      child.Wait();
    }
    ThisCard() = nullptr;
  }

  NvmlProcess Holds(int64_t bytes, pid_t pid) const {
    NvmlProcess process;
    process.pid = static_cast<unsigned>(pid);
    process.used_bytes = static_cast<unsigned long long>(bytes);
    return process;
  }

  FakeCard card_;
  ProcessTree tree_;
  std::vector<Child> children_;
};

TEST_F(DeviceMemoryOf, IsThatOfOurDescendantsTogether) {
  card_.processes = {Holds(5 * kGiB, children_[0].pid()), Holds(2 * kGiB, children_[1].pid()),
                     Holds(40 * kGiB, ::getpid()), Holds(40 * kGiB, ::getppid())};
  EXPECT_EQ(DeviceMemory(Load).MostHeldOfOne(tree_), 7 * kGiB);
}

TEST_F(DeviceMemoryOf, IsUnknownIfTheDriverReportsNoneOfThem) {
  EXPECT_EQ(DeviceMemory(Load).MostHeldOfOne(tree_), 0);
  card_.processes = {Holds(5 * kGiB, ::getppid())};
  EXPECT_EQ(DeviceMemory(Load).MostHeldOfOne(tree_), 0);
  card_.processes = {Holds(-1, children_[0].pid())};  // all ones: not available
  EXPECT_EQ(DeviceMemory(Load).MostHeldOfOne(tree_), 0);
  card_.processes = {Holds(5 * kGiB, children_[0].pid())};
  for (const char* call : {"processes", "count", "index"}) {
    card_.says = {{call, kNvmlNoPermission}};
    EXPECT_EQ(DeviceMemory(Load).MostHeldOfOne(tree_), 0) << call;
  }
  card_.says.clear();
  card_.begins = kNvmlDriverNotLoaded;
  EXPECT_EQ(DeviceMemory(Load).MostHeldOfOne(tree_), 0);
}

TEST_F(DeviceMemoryOf, KeepsTheLargestValueOfARun) {
  trainers::Trainer trainer;
  RunSpec spec;
  spec.device = "cuda";
  FakeClock clock;
  RunFollower follower(trainer, spec, "log", "progress", true, tree_, clock, Load);
  for (const int64_t held : {3, 6, 2}) {
    card_.processes = {Holds(held * kGiB, children_[0].pid())};
    clock.SleepNs(60'000'000'000);
    follower.Look();
  }
  EXPECT_EQ(follower.device_peak_bytes(), 6 * kGiB);
  EXPECT_EQ(card_.sessions, 1);  // one session for all of them

  spec.device = "cpu";
  RunFollower other(trainer, spec, "log", "progress", true, tree_, clock, Load);
  other.Look();
  EXPECT_EQ(other.device_peak_bytes(), 0);
  EXPECT_EQ(card_.sessions, 1);
}

}  // namespace
}  // namespace ridgeline::node
