// Kills of the driver at its n-th request to the service, and at random moments, on a double of SageMaker.
#include "tests/torture/torture.h"
#include "base/clock.h"
#include "tests/cluster/sagemaker/service.h"

namespace ridgeline::testing {
namespace {

constexpr int64_t kLongestNs = 120'000'000'000;  // of a run that nobody kills

class SageMakerTorture : public SageMakerSweep {};

// Kills the driver once `is_time`. Returns whether it was still there.
bool KillsOnce(Child& driver, const std::function<bool()>& is_time) {
  const SystemClock clock;
  const int64_t end_ns = clock.MonotonicNs() + kLongestNs;
  while (!is_time() && clock.MonotonicNs() < end_ns) {
    if (driver.WaitFor(1'000'000)) return false;
  }
  driver.Signal(SIGKILL);
  return driver.Wait().signal == SIGKILL;
}

// The seed determines the place of the first kill, while the service holds the driver's n-th request, before or after
// it is done; and whether the jobs are of spot instances. 64 rounds have every place.
TEST_F(SageMakerTorture, OnSageMaker) {
  Torture("sagemaker", [](uint64_t seed) {
    constexpr int kPoints = 3;
    constexpr uint64_t kCalls = 16;  // fewer than a whole run needs
    SageMakerCli cli;
    const auto sweep = Write(cli, kPoints, "slow=200", {{"spot", seed / (2 * kCalls) % 2 == 1}});
    std::map<std::string_view, int64_t> hits;

    const bool is_done = seed / kCalls % 2 == 1;
    const char* hold = is_done ? "hold_after" : "hold_before";
    cli.service.Tell({{"faults", {{{"op", "*"}, {"skip", seed % kCalls}, {"do", hold}}}}});
    Child first = cli.Start({"run", sweep});
    const auto is_held = [&] { return cli.service.Tell(Json::object()).at("held") == 1; };
    if (KillsOnce(first, is_held)) ++hits[is_done ? "driver, after a request was done" : "driver, before it was"];
    EXPECT_TRUE(is_held()) << "it was killed elsewhere";
    cli.service.Tell({{"release", true}});
    Child second = cli.Start({"run", sweep});
    std::mt19937_64 random(seed);
    const SystemClock clock;
    const int64_t at_ns = clock.MonotonicNs() + static_cast<int64_t>(random() % 2000) * 1'000'000;
    if (KillsOnce(second, [&] { return clock.MonotonicNs() >= at_ns; })) ++hits["driver, at a moment"];

    cli.ExpectOk(cli.Run({"run", sweep}));
    cli.ExpectEachRanOnce(kPoints);
    EXPECT_EQ(cli.service.Jobs().size(), static_cast<size_t>(kPoints));
    return hits;
  });
}

}  // namespace
}  // namespace ridgeline::testing
